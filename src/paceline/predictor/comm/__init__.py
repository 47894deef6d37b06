"""Communication: collective algorithms, buckets, gradient and tensor-parallel exchange."""
