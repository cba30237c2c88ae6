"""The acceptance suite: a black box that asks a running server fixed questions and writes a protocol a person can sign.

It speaks MCP and HTTP only and knows nothing of the server's insides.
"""
