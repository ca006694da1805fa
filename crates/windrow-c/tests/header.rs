//! The header `include/windrow.h` is what cbindgen makes of the functions.
//!
//! After a change of the interface:
//! `cargo test -p windrow-c --test header -- --ignored make_the_header_anew`

#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]
#![expect(clippy::disallowed_methods, reason = "reads and writes the repository")]

use std::fs;
use std::path::{Path, PathBuf};

fn header() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("include/windrow.h")
}

fn fresh() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(folder.join("cbindgen.toml")).unwrap();
    let builder = cbindgen::Builder::new().with_config(config);
    let bindings = builder.with_src(folder.join("src/lib.rs")).generate();
    let mut text = Vec::new();
    bindings.unwrap().write(&mut text);
    String::from_utf8(text).unwrap()
}

#[test]
fn the_header_is_that_of_the_functions() {
    let present = fs::read_to_string(header()).unwrap();
    let differs = present
        .lines()
        .zip(fresh().lines())
        .position(|(old, new)| old != new);
    assert_eq!(
        differs, None,
        "the header differs from this line on; make it anew"
    );
    assert_eq!(present, fresh());
}

#[test]
#[ignore = "changes the header"]
fn make_the_header_anew() {
    fs::create_dir_all(header().parent().unwrap()).unwrap();
    fs::write(header(), fresh()).unwrap();
}
