//! Layer 2: sorted data blocks and the bytes they live in.
