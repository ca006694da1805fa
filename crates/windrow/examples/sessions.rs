//! Sessions that expire: a login lives for a while, each use makes it live longer, and nobody cleans up.
//!
//! `cargo run --example sessions`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]
#![expect(
    clippy::disallowed_methods,
    reason = "an example is no part of the engine"
)]

use std::error::Error;
use std::thread;
use std::time::Duration;

use windrow::{Db, Expiry, Keyspace, Options};

/// Half an hour in earnest.
const TIME_TO_LIVE: Duration = Duration::from_millis(200);

/// The user of a session, which lives longer from now on. A logout in between counts: an insertion would undo it.
fn user_of(sessions: &Keyspace, token: &str) -> windrow::Result<Option<Vec<u8>>> {
    let Some(user) = sessions.get(token)? else {
        return Ok(None);
    };
    let renewed = sessions.with_ttl(TIME_TO_LIVE);
    let is_there = renewed.compare_and_swap(token, Some(&user), Some(&user))?;
    Ok(is_there.then_some(user))
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let db = Db::open(folder.path(), Options::default())?;
    let sessions = db.keyspace("sessions")?;
    for number in 0..10_000 {
        let (token, user) = (format!("token {number}"), format!("user {number}"));
        sessions.insert_with_ttl(token, user, TIME_TO_LIVE)?;
    }
    // The session of a machine stays.
    sessions.insert("token of the machine", "user 0")?;
    assert_eq!(
        sessions.expires_at("token of the machine")?,
        Some(Expiry::Never)
    );
    // One user comes back now and then.
    for _ in 0..5 {
        thread::sleep(TIME_TO_LIVE / 4);
        user_of(&sessions, "token 7")?;
    }
    // Another one logs out.
    sessions.remove("token 8")?;
    assert_eq!(user_of(&sessions, "token 8")?, None);
    thread::sleep(TIME_TO_LIVE * 2);
    assert_eq!(sessions.get("token 1")?, None);
    assert_eq!(sessions.count::<&[u8]>(..)?, 1);
    // A token that has expired can be given again, by one of those who try.
    assert!(sessions.insert_if_absent("token 1", "somebody else")?);
    // Merges drop what has expired; this one does so at once.
    sessions.compact_range::<&[u8]>(..)?;
    let stats = db.stats();
    println!(
        "{} sessions have expired, {} are left",
        stats.entries_expired,
        sessions.iter()?.count()
    );
    assert_eq!(stats.entries_expired, 9_998);
    Ok(())
}
