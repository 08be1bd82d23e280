"""Kernel functions, their Gram matrices, kernel expansions and explicit feature maps."""
