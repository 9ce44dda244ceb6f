// Browsers start no worker from a file, so where the site is opened from a disk, a hidden frame does the search.
// The name of this file tells the site's generator that it need not fetch such a script from elsewhere.
(() => {
  if (location.protocol !== "file:") return;

  class FrameWorker extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => setTimeout(() => this.hear(structuredClone(data)));  // later, as a worker would
      inside.importScripts = (...scripts) => scripts.reduce((done, script) => done.then(() => this.load(script)), Promise.resolve());
      this.ready = this.load(url);
    }

    load(url) {
      return new Promise((resolve, reject) => {
        const script = this.frame.contentDocument.createElement("script");
        Object.assign(script, { src: url, onload: resolve, onerror: reject });
        this.frame.contentDocument.body.append(script);
      });
    }

    hear(data) {
      const event = new MessageEvent("message", { data });
      this.dispatchEvent(event);
      this.onmessage?.(event);
    }

    postMessage(data) {
      const copy = structuredClone(data);
      const { contentWindow: inside } = this.frame;
      this.ready.then(() => setTimeout(() => inside.dispatchEvent(new inside.MessageEvent("message", { data: copy }))));
    }

    terminate() {
      this.frame.remove();
    }
  }

  window.Worker = FrameWorker;
})();
