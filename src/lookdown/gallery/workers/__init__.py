"""Machines that work for a gallery, as a Ray cluster: they embed its images, and estimate its metric."""
