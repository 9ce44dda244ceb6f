"""Galleries that outgrow one machine: Milvus, Ray and object storage, imported only where they are asked for."""
