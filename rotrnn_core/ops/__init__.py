"""Pure functions of tensors: the mathematics that layers are made of."""
