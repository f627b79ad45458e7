"""The embedded world: a task, its tokenizer and a base model, small enough for a laptop."""
