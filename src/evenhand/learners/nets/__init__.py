"""Networks: one, or many trained as one stack; PyTorch is imported when one is used."""
