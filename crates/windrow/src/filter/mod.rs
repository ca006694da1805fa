//! Layer 2: blocked Bloom filters with fractional bits per key.
