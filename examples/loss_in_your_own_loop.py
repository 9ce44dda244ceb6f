"""Train a network of your own by a loss of lookdown: the loss is a `torch.nn.Module`, the loop is yours."""

import torch
from sklearn.datasets import load_digits

from lookdown import GaussianLikelihoodRatio, evaluate, make_loss

pixels, digits = load_digits(return_X_y=True)  # your own images and labels here
images, labels = torch.tensor(pixels, dtype=torch.float32) / 16, torch.tensor(digits)
train, queries, gallery = slice(0, 800), slice(800, 1000), slice(1000, None)

torch.manual_seed(0)
network = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 16))
optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
loss = make_loss("glrt", classes=10, dimension=16)  # or "triplet", "circle" and so on: all are called in the same way

for epoch in range(6):
    with torch.no_grad():
        x = network(images)
    # The GLRT loss uses statistics of all training pairs: estimate them again as the network changes.
    metric = GaussianLikelihoodRatio(shrinkage=0.1).fit(x[train], digits[train])
    loss.set_metric(metric)  # the other losses ignore it

    scores = evaluate(metric, x[queries], digits[queries], x[gallery], digits[gallery])
    print(f"epoch {epoch}: mean average precision {scores.mean_average_precision:.3f}")

    for batch in torch.randperm(800).view(-1, 50):
        optimizer.zero_grad()
        loss(network(images[batch]), labels[batch]).backward()
        optimizer.step()
