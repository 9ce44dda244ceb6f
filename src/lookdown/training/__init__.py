"""The only place with an optimizer: batches, features of a frozen trunk, and what is learnt from them."""
