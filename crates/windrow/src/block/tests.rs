//! Blocks built, parsed, searched and damaged.

