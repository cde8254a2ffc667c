"""The pages of the viewer, in the look of reports: HTML in which everything that is not ours is text."""
