//! Open a database, write, read, delete, and open it again.
//!
//! `cargo run --example quickstart`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use windrow::{Db, Options};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let db = Db::open(folder.path(), Options::default())?;
    let planets = db.keyspace("planets")?;

    planets.insert("earth", "one moon")?;
    planets.insert("mars", "two moons")?;
    planets.insert("pluto", "five moons")?;
    planets.remove("pluto")?;

    // `get` allocates a value; `get_into` reuses a buffer; `get_pinned` reads in place.
    assert_eq!(planets.get("mars")?.as_deref(), Some(&b"two moons"[..]));
    assert_eq!(planets.get("pluto")?, None);
    let mut value = Vec::new();
    assert!(planets.get_into("earth", &mut value)?);
    assert_eq!(value, b"one moon");
    let pinned = planets.get_pinned("earth")?;
    assert_eq!(pinned.as_deref(), Some(&b"one moon"[..]));
    drop(pinned);

    // After a close and an open all entries exist.
    drop(planets);
    db.close()?;
    let db = Db::open(folder.path(), Options::default())?;
    for entry in db.keyspace("planets")?.iter()? {
        let (name, moons) = entry?;
        println!("{}: {}", name.escape_ascii(), moons.escape_ascii());
    }
    Ok(())
}
