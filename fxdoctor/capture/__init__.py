"""Three routes from a model to one `torch.fx.Graph`: record (one eager run), symbolic, dynamo."""
