//! Ranges, prefixes and cursors, in both directions.
//!
//! `cargo run --example ordered_scan`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use windrow::{Db, Options};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let db = Db::open(folder.path(), Options::default())?;
    let files = db.keyspace("files")?;
    for (path, bytes) in [
        ("docs/format.md", "9000"),
        ("src/api/db.rs", "5000"),
        ("src/api/view.rs", "6000"),
        ("src/lib.rs", "800"),
        ("tests/map.rs", "3000"),
    ] {
        files.insert(path, bytes)?;
    }

    // Iterators yield copies of entries. The order of keys is bytewise.
    for entry in files.prefix("src/")? {
        let (path, bytes) = entry?;
        println!("{}: {} bytes", path.escape_ascii(), bytes.escape_ascii());
    }
    let last_two: Vec<_> = files
        .range("e".."t")?
        .rev()
        .take(2)
        .collect::<windrow::Result<_>>()?;
    assert_eq!(last_two[0].0, b"src/lib.rs");
    assert_eq!(last_two[1].0, b"src/api/view.rs");

    // A cursor lends keys and values: no allocation and no copy per step.
    let mut cursor = files.cursor()?;
    let mut total_bytes = 0;
    let mut found = cursor.seek("src/")?;
    while found && cursor.key().starts_with(b"src/") {
        total_bytes += cursor.value()?.len();
        found = cursor.next()?;
    }
    assert_eq!(total_bytes, 11);
    // The cursor is at the next entry, and may change its direction at any step.
    assert_eq!(cursor.key(), b"tests/map.rs");
    assert!(cursor.prev()? && cursor.key() == b"src/lib.rs");

    let first = files.first_key_value()?.map(|entry| entry.0);
    assert_eq!(first.as_deref(), Some(&b"docs/format.md"[..]));
    drop(cursor);
    db.close()?;
    Ok(())
}
