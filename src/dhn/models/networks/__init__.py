"""Scalar networks: the smooth functions of a block and a code inside a Hamiltonian."""
