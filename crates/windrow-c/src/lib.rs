//! Windrow's C interface. `cbindgen` makes `include/windrow.h` of the functions and their comments, so these comments are
//! for programmers of C; a test compares the header with a fresh one. The rules that hold for all functions are at the top
//! of the header, in `cbindgen.toml`.
//!
//! - [`functions`] has all functions, in files by what they are about.
//!
//! Concurrency: as the handles, whose comments say it.

pub mod functions;
