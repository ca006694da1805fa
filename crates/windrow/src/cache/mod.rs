//! Layer 2: cached blocks and open files.
