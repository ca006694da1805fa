//! Keeps a second database equal to the first.
//!
//! The program writes to a source, lets the copy catch up now and then, and ends the one or the other at any time by a
//! drop of all handles, sometimes with changes that the copy has not seen. Then it compares both.
//!
//! `cargo run --example replica`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

mod replica;

use std::path::Path;
use std::time::Duration;

use replica::{NOTES, Replica};
use windrow::{Batch, Db, ErrorKind, Options, Result, Retention};

const CONSUMER: &str = "replica";

fn options() -> Options {
    let mut options = Options::default();
    options.keyspace.memtable_bytes = 64 << 10;
    options.change_retention = Retention {
        bytes: 200 << 10,
        idle: Duration::from_secs(3600),
    };
    options
}

fn write(source: &Db, round: u32) -> Result<()> {
    let users = source.keyspace("users")?;
    let visits = source.keyspace("visits")?;
    for user in 0..200_u32 {
        let mut batch = Batch::new();
        let name = format!("user {user:03} as of round {round}");
        batch.insert(
            &users,
            user.to_be_bytes(),
            name.repeat(if user == 7 { 100 } else { 2 }),
        )?;
        batch.insert(&visits, [round, user].map(u32::to_be_bytes).concat(), "")?;
        source.write(&batch)?;
    }
    users.remove((round % 200).to_be_bytes())?;
    visits.delete_range(..round.saturating_sub(3).to_be_bytes())?;
    if round % 5 == 4 {
        source
            .keyspace("today")?
            .insert("round", round.to_be_bytes())?;
        source.keyspace("yesterday")?;
        source.swap_keyspaces("today", "yesterday")?;
    }
    Ok(())
}

/// Whether both have the same keyspaces with the same entries.
fn are_equal(source: &Db, copy: &Db) -> Result<bool> {
    let mut names = copy.keyspace_names();
    names.retain(|name| name != NOTES);
    if names != source.keyspace_names() {
        return Ok(false);
    }
    for name in names {
        let (one, other) = (
            source.keyspace(&name)?.iter()?,
            copy.keyspace(&name)?.iter()?,
        );
        if !one.map(Result::ok).eq(other.map(Result::ok)) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    run(folder.path())?;
    Ok(())
}

fn run(folder: &Path) -> Result<()> {
    let open = |name: &str| Db::open(folder.join(name), options());
    let (mut source, mut copy) = (open("source")?, open("copy")?);
    let mut begun_again = 0;
    for round in 0..40 {
        write(&source, round)?;
        // A consumer that is behind by too many rounds has to begin again.
        if round % 3 == 2 && !(20..35).contains(&round) {
            let replica = Replica::new(copy.clone())?;
            let consumer = source.consumer(CONSUMER)?;
            match replica.catch_up(&source, &consumer) {
                Err(error) if error.kind() == ErrorKind::FellBehind => {
                    println!("round {round}: {error}");
                    replica.begin_again(&source, CONSUMER)?;
                    begun_again += 1;
                }
                outcome => outcome?,
            }
            assert!(are_equal(&source, &copy)?, "round {round}");
        }
        match round % 4 {
            1 => {
                drop(source);
                source = open("source")?;
            }
            3 => {
                drop(copy);
                copy = open("copy")?;
            }
            _ => {}
        }
    }
    assert_eq!(begun_again, 1, "the copy was stopped for long once");
    println!("the copy is equal after 40 rounds");
    Ok(())
}
