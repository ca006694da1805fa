//! The replica: a second database in another process, which the change feed keeps equal to the first.
//!
//! The writer has the consumer and serves its changes at a socket. The replica says how far it has come, applies what it gets,
//! makes it durable when it is asked to, and says so; then the consumer acknowledges. The number of the newest change is
//! stored with what the change did. A replica without a number, or whose consumer has fallen behind or was made anew, begins
//! again: the writer makes a new consumer, and the replica copies a state of a secondary that it opens afterwards.
//!
//! Concurrency: one thread on each side.

use super::child::{Event, Report, Stage, options, unless_full};
use super::readers;
use crate::stress::lanes::{Counts, KEYSPACES, Model, marked};
use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;
use windrow::runtime::Runtime;
use windrow::{Batch, Change, Consumer, Db, ErrorKind, Keyspace, Result};

/// The folder of the replica.
pub(super) const REPLICA: &str = "replica";
const CONSUMER: &str = "replica";
/// The keyspace of the replica's own note.
const NOTES: &str = "notes";
/// The sequence number of the newest change that it has. Missing while it has no whole state.
const POSITION: &str = "position";
/// Stands for a missing position.
const NO_POSITION: u64 = 0;
/// Changes between two acknowledgements.
const CHANGES_MAX: usize = 200;
/// The entries of a batch while a state is copied.
const COPIED_AT_ONCE: usize = 100;
/// How long a side waits before it looks whether it is to end.
const WAIT: Duration = Duration::from_millis(50);

/// What the writer says.
#[derive(Debug)]
enum Message {
    /// The writes of a change, and its sequence number.
    Change(u64, Vec<u8>),
    /// Make durable what you have, and say how far that is.
    Persist,
    /// There is a new consumer: copy, and say how far that is.
    Copy,
    /// Forget how far you are, and come again.
    BeginAgain,
}

/// One end of a connection; `None` instead of an answer if the other one is gone, or if this process is to end.
struct Connection<'a> {
    stream: UnixStream,
    stage: &'a Stage,
}

impl<'a> Connection<'a> {
    fn new(stream: UnixStream, stage: &'a Stage) -> io::Result<Self> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(WAIT))?;
        stream.set_write_timeout(Some(WAIT))?;
        Ok(Self { stream, stage })
    }

    fn send(&mut self, message: &Message) -> Option<()> {
        let (kind, sequence, bytes): (u8, u64, &[u8]) = match message {
            Message::Change(sequence, bytes) => (0, *sequence, bytes),
            Message::Persist => (1, 0, &[]),
            Message::Copy => (2, 0, &[]),
            Message::BeginAgain => (3, 0, &[]),
        };
        let mut sent = vec![kind];
        sent.extend(sequence.to_le_bytes());
        sent.extend((bytes.len() as u64).to_le_bytes());
        sent.extend(bytes);
        self.send_bytes(&sent)
    }

    fn receive(&mut self) -> Option<Message> {
        let [kind] = self.receive_bytes()?;
        let sequence = u64::from_le_bytes(self.receive_bytes()?);
        let length = u64::from_le_bytes(self.receive_bytes()?);
        let mut bytes = vec![0; usize::try_from(length).ok()?];
        self.fill(&mut bytes)?;
        Some(match kind {
            0 => Message::Change(sequence, bytes),
            1 => Message::Persist,
            2 => Message::Copy,
            _ => Message::BeginAgain,
        })
    }

    /// The position of the replica.
    fn send_position(&mut self, position: u64) -> Option<()> {
        self.send_bytes(&position.to_le_bytes())
    }

    fn receive_position(&mut self) -> Option<u64> {
        self.receive_bytes().map(u64::from_le_bytes)
    }

    fn send_bytes(&mut self, mut bytes: &[u8]) -> Option<()> {
        while !bytes.is_empty() {
            let written = self.stream.write(bytes);
            let count = self.unless_gone(written)?;
            bytes = &bytes[count..];
        }
        Some(())
    }

    fn receive_bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Some(bytes)
    }

    fn fill(&mut self, mut buffer: &mut [u8]) -> Option<()> {
        while !buffer.is_empty() {
            let read = self.stream.read(buffer);
            let count = self.unless_gone(read)?;
            buffer = &mut buffer[count..];
        }
        Some(())
    }

    /// The bytes of a call: none if it has waited long enough.
    fn unless_gone(&self, called: io::Result<usize>) -> Option<usize> {
        use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
        match called {
            Ok(0) => None,
            Ok(count) => Some(count),
            Err(error) if matches!(error.kind(), Interrupted | TimedOut | WouldBlock) => {
                (!self.stage.is_over()).then_some(0)
            }
            Err(_) => None,
        }
    }
}

/// Serves the changes to one replica after the other. A thread of the writer.
pub(super) fn serve(stage: &Stage, db: &Db) -> Result<()> {
    let listener = listen(stage).expect("a socket can be made");
    while !stage.is_over() {
        let Ok((stream, _)) = listener.accept() else {
            stage.sleep(WAIT / 10);
            continue;
        };
        if let Ok(connection) = Connection::new(stream, stage) {
            serve_one(stage, db, connection)?;
        }
    }
    Ok(())
}

fn listen(stage: &Stage) -> io::Result<UnixListener> {
    let path = stage.path("feed");
    #[expect(
        clippy::disallowed_methods,
        reason = "a killed process has left its socket"
    )]
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(&path)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Serves one connection until its end.
fn serve_one(stage: &Stage, db: &Db, mut replica: Connection<'_>) -> Result<()> {
    let Some(position) = replica.receive_position() else {
        return Ok(());
    };
    let served = match position {
        NO_POSITION => begin_again(stage, db, &mut replica),
        position => follow(stage, db, position, &mut replica),
    };
    let served = match served {
        Err(error) if error.kind() == ErrorKind::FellBehind => {
            let consumers = db.consumers();
            let behind = consumers.iter().find(|it| it.name == CONSUMER);
            assert!(behind.is_some_and(|it| it.is_behind), "{error}");
            stage.happened(Event::FellBehind);
            replica.send(&Message::BeginAgain);
            Ok(())
        }
        served => served,
    };
    unless_full(served).map(drop)
}

/// Goes on behind `position`, if the consumer has all changes behind it.
fn follow(stage: &Stage, db: &Db, position: u64, replica: &mut Connection<'_>) -> Result<()> {
    let newest = db.snapshot().sequence();
    assert!(
        position <= newest,
        "the replica has change {position}, and the newest one is {newest}"
    );
    let consumer = db.consumer(CONSUMER)?;
    let place = consumer.acknowledged()?;
    assert!(
        position >= place,
        "the replica has change {position}, and the consumer has acknowledged {place}"
    );
    send_changes(stage, db, &consumer, replica)
}

fn begin_again(stage: &Stage, db: &Db, replica: &mut Connection<'_>) -> Result<()> {
    match db.remove_consumer(CONSUMER) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        outcome => outcome?,
    }
    let consumer = db.consumer(CONSUMER)?;
    // The secondary has seen what is visible, so it must not be lost again.
    db.persist()?;
    replica.send(&Message::Copy);
    let Some(position) = replica.receive_position() else {
        return Ok(());
    };
    consumer.acknowledge(position)?;
    send_changes(stage, db, &consumer, replica)
}

fn send_changes(
    stage: &Stage,
    db: &Db,
    consumer: &Consumer,
    replica: &mut Connection<'_>,
) -> Result<()> {
    let mut changes = consumer.changes()?;
    let mut sent = 0;
    while !stage.is_over() {
        let change = changes.next(WAIT)?;
        let is_idle = change.is_none();
        match change {
            None | Some(Change::KeyspaceCreated { .. }) => {}
            Some(Change::Batch(batch)) => {
                let message = Message::Change(batch.last(), batch.to_bytes());
                if replica.send(&message).is_none() {
                    return Ok(());
                }
                sent += 1;
            }
            Some(change) => panic!("nobody has done this: {change:?}"),
        }
        if sent == CHANGES_MAX || is_idle && sent > 0 {
            sent = 0;
            replica.send(&Message::Persist);
            let Some(position) = replica.receive_position() else {
                return Ok(());
            };
            consumer.acknowledge(position)?;
            stage.happened(Event::Acknowledged);
        }
        if is_idle && consumer.acknowledged()? == db.snapshot().sequence() {
            stage.report(Report::Settled);
        }
    }
    Ok(())
}

/// The process of the replica.
pub(super) fn run(stage: &Stage) -> Result<()> {
    let db = Db::open(stage.path(REPLICA), options())?;
    let mut replica = Replica {
        stage,
        keyspaces: [db.keyspace(KEYSPACES[0])?, db.keyspace(KEYSPACES[1])?],
        notes: db.keyspace(NOTES)?,
        db,
        model: Model::new(stage.seed),
        next_check: Duration::ZERO,
    };
    while !stage.is_over() {
        let stream = UnixStream::connect(stage.path("feed"));
        match stream.and_then(|stream| Connection::new(stream, stage)) {
            Ok(connection) => replica.apply_all(connection)?,
            // The writer is being started.
            Err(_) => stage.sleep(WAIT),
        }
    }
    if replica.position()? != NO_POSITION {
        stage.report(Report::Last(replica.check()?));
    }
    let Replica { db, .. } = replica;
    db.close()
}

/// The replica, as its process sees it.
struct Replica<'a> {
    stage: &'a Stage,
    db: Db,
    keyspaces: [Keyspace; 2],
    notes: Keyspace,
    model: Model,
    next_check: Duration,
}

impl Replica<'_> {
    fn position(&self) -> Result<u64> {
        let stored = self.notes.get(POSITION)?;
        let bytes = stored.and_then(|bytes| bytes.as_slice().try_into().ok());
        Ok(bytes.map_or(NO_POSITION, u64::from_le_bytes))
    }

    fn check(&mut self) -> Result<Counts> {
        let least = Counts::default();
        let counts = self.model.check(&self.db, least, "the replica")?;
        self.stage.happened(Event::ReplicaCompared);
        Ok(counts)
    }

    /// Does what the writer says until one of both ends.
    fn apply_all(&mut self, mut writer: Connection<'_>) -> Result<()> {
        writer.send_position(self.position()?);
        while let Some(message) = writer.receive() {
            match message {
                Message::Change(sequence, bytes) => self.apply(sequence, &bytes)?,
                Message::Persist => {
                    self.db.persist()?;
                    writer.send_position(self.position()?);
                    if self.stage.clock.now() >= self.next_check {
                        self.check()?;
                        self.next_check = self.stage.clock.now() + self.stage.interval;
                    }
                }
                Message::Copy => {
                    if !self.copy()? {
                        return Ok(());
                    }
                    writer.send_position(self.position()?);
                    self.check()?;
                }
                Message::BeginAgain => {
                    self.notes.remove(POSITION)?;
                    return self.db.persist();
                }
            }
        }
        Ok(())
    }

    /// Applies a change, unless it is there already. Each lane has at most one batch in a change, since it waits for the
    /// acknowledgement of one before it writes the next.
    fn apply(&self, sequence: u64, bytes: &[u8]) -> Result<()> {
        if self.position()? >= sequence {
            return Ok(());
        }
        let before = marked(&self.keyspaces[0])?;
        let mut batch = self.db.batch_from_bytes(bytes)?;
        batch.insert(&self.notes, POSITION, sequence.to_le_bytes())?;
        self.db.write(&batch)?;
        let after = marked(&self.keyspaces[0])?;
        let is_next = |(after, before): (&u64, u64)| [before, before + 1].contains(after);
        assert!(
            after != before && after.iter().zip(before).all(is_next),
            "after the batches {before:?} of the lanes, change {sequence} leads to {after:?}"
        );
        Ok(())
    }

    /// Copies the newest state of a secondary; false if the end comes first.
    fn copy(&self) -> Result<bool> {
        let Some(secondary) = readers::open(self.stage)? else {
            return Ok(false);
        };
        let state = secondary.db();
        let snapshot = state.snapshot();
        let mut batch = Batch::new();
        for target in &self.keyspaces {
            target.clear()?;
            let Some(source) = state.existing_keyspace(&target.name())? else {
                continue;
            };
            for entry in source.at(&snapshot)?.iter()? {
                let (key, value) = entry?;
                batch.insert(target, key, value)?;
                if batch.len() == COPIED_AT_ONCE {
                    self.db.write(&batch)?;
                    batch.clear();
                }
            }
        }
        batch.insert(&self.notes, POSITION, snapshot.sequence().to_le_bytes())?;
        self.db.write(&batch)?;
        self.db.persist()?;
        self.stage.happened(Event::Copied);
        Ok(true)
    }
}
