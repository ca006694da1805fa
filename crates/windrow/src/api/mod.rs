//! Layer 6: the public interface; argument checks and documentation.
