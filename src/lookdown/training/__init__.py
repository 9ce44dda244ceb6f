"""The only place with an optimizer: two stages, a visible loop, runs that can be killed and go on."""
