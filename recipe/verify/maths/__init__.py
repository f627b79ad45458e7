"""Mathematics: from text to tokens, to a tree, to values that are compared."""
