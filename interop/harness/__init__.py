"""Runs Swiftwater and foreign QUIC stacks against each other, case by case."""
