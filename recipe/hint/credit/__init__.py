"""Credit of methods whose advantages are not verl's: numpy in, numpy out."""
