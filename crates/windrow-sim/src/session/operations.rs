//! What a session does to its database and its model at once.

use super::held::Held;
use super::{CHECKPOINT, Session, contents, verify};
use crate::filtered::{seen_change, seen_value};
use crate::history::Operation;
use crate::model::{Change, Contents, EXPIRING, Effect, Status, differences, with_expiry};
use std::collections::BTreeSet;
use std::ops::Bound;
use std::time::Duration;
use windrow::{Batch, Db, Durability, ErrorKind, Keyspace, Result};

impl Session {
    /// Carries out one operation and keeps the model in step.
    ///
    /// # Errors
    /// The database reported one. The model then allows every state that the error leaves open.
    pub fn apply(&mut self, operation: &Operation) -> Result<()> {
        match operation {
            Operation::Write(changes, durability) => self.write(changes, *durability),
            Operation::BulkLoad(name, entries) => self.bulk_load(name, entries),
            Operation::Turn(milliseconds) => {
                self.lock_model().turn(*milliseconds);
                self.show_moment();
                Ok(())
            }
            Operation::Persist => self.persist(),
            Operation::BeginPersist => self.begin_persist(),
            Operation::Flush => {
                self.db().flush()?;
                if self.setting.has_log() {
                    self.lock_model().persisted();
                }
                Ok(())
            }
            Operation::Compact(keyspace, from, to) => {
                let keyspace = self.keyspace(keyspace)?;
                keyspace.compact_range(from.clone()..=to.clone())
            }
            Operation::Drop(name) => self.drop_keyspace(name),
            Operation::Swap(first, second) => self.swap_keyspaces(first, second),
            Operation::Rename(name, new) => self.rename_keyspace(name, new),
            Operation::Checkpoint => self.checkpoint(),
            Operation::WaitIdle => self.db().wait_idle(),
            Operation::Step(count) => {
                for _ in 0..*count {
                    self.runtime.step();
                }
                Ok(())
            }
            Operation::Hold => self.hold(),
            Operation::Release => match self.held.pop_front() {
                Some(held) => held.release(),
                None => Ok(()),
            },
            Operation::Reopen => self.reopen(),
            Operation::ReopenEarlier(milliseconds) => self.reopen_earlier(*milliseconds),
            Operation::Kill => self.kill(),
        }
    }

    /// Commits `changes`: as a batch, or as a single write if there is only one change.
    pub fn write(&mut self, changes: &[Change], durability: Durability) -> Result<()> {
        let durability = match durability {
            Durability::Sync if !self.setting.has_log() => Durability::Buffered,
            durability => durability,
        };
        let moment = self.lock_model().moment();
        let stamped = changes.iter().cloned().map(|(name, key, effect)| {
            let effect = match effect {
                Effect::InsertFor(value, ttl) => {
                    Effect::InsertFor(with_expiry(moment + ttl, &value), ttl)
                }
                effect => effect,
            };
            (name, key, effect)
        });
        let changes: &[Change] = &stamped.collect::<Vec<_>>();
        let keyspaces = changes
            .iter()
            .map(|(name, _, _)| self.keyspace(name))
            .collect::<Result<Vec<_>>>()?;
        let status = match durability {
            Durability::Sync => Status::Durable,
            Durability::Buffered => Status::Buffered,
        };
        let seen = changes.iter().cloned().map(seen_change).collect();
        self.change(seen, status, |session| {
            session.commit(&keyspaces, changes, durability)
        })
    }

    /// Loads `entries`, ascending. For the model this is a durable commit. In the keyspace whose entries may expire, each
    /// one does, after a time that depends on its length, and every other load is the ingestion of a file.
    pub fn bulk_load(&mut self, name: &str, entries: &[(Vec<u8>, Vec<u8>)]) -> Result<()> {
        let keyspace = self.keyspace(name)?;
        let moment = self.lock_model().moment();
        let effect = |value: &Vec<u8>| {
            if name == EXPIRING {
                let ttl = 1 + value.len() as u64 * 7 % 400;
                Effect::InsertFor(with_expiry(moment + ttl, value), ttl)
            } else {
                Effect::Insert(value.clone())
            }
        };
        let insertion =
            |(key, value): &(Vec<u8>, Vec<u8>)| (name.to_owned(), key.clone(), effect(value));
        let changes: Vec<Change> = entries.iter().map(insertion).collect();
        let is_written = name == EXPIRING && self.write_external(&changes, moment)?;
        let loaded = self.change(changes.clone(), Status::Durable, |session| {
            session.load(&keyspace, &changes, moment, is_written)
        });
        if let Err(error) = &loaded
            && error.kind() == ErrorKind::NoSpace
        {
            // Nothing was added, and the next error may be that of another commit.
            self.lock_model().withdraw();
            self.unresolved = false;
        }
        loaded
    }

    /// Drops the keyspace `name`, if it exists. For the model this is a durable commit that removes
    /// every entry. The old handle must refuse everything afterwards.
    fn drop_keyspace(&mut self, name: &str) -> Result<()> {
        if !self.has_keyspace(name) {
            return Ok(());
        }
        let handle = self.keyspace(name)?;
        let model = self.lock_model();
        let mut keys: BTreeSet<Vec<u8>> = BTreeSet::new();
        // The last commit may count or not.
        for contents in [
            model.current(),
            model.state(model.begun().saturating_sub(1)),
        ] {
            let entries = contents.get(name).into_iter().flatten();
            keys.extend(entries.map(|(key, _)| key.clone()));
        }
        drop(model);
        let removal = |key| (name.to_owned(), key, Effect::Remove);
        let changes = keys.into_iter().map(removal).collect();
        self.change(changes, Status::Durable, |session| {
            session.db().drop_keyspace(name)
        })?;
        self.keyspaces.remove(name);
        assert!(!self.has_keyspace(name));
        let refused = [
            handle.get("key").map(drop),
            handle.iter().map(drop),
            handle.insert("key", "value"),
            handle.compact_range::<&[u8]>(..),
        ];
        for outcome in refused {
            let kind = outcome.map_err(|error| error.kind());
            assert_eq!(kind, Err(ErrorKind::NotFound), "of a dropped keyspace");
        }
        Ok(())
    }

    /// Swaps two keyspaces, if both exist. For the model this is a durable commit that exchanges their entries.
    fn swap_keyspaces(&mut self, first: &str, second: &str) -> Result<()> {
        if first == second || !self.has_keyspace(first) || !self.has_keyspace(second) {
            return Ok(());
        }
        let handles = [self.keyspace(first)?, self.keyspace(second)?];
        let contents = self.visible()?;
        let changes = [(first, second), (second, first)].map(|(name, other)| {
            let removed = removals(&contents, name);
            removed.chain(insertions(&contents, other, name))
        });
        let changes = changes.into_iter().flatten().collect();
        self.change(changes, Status::Durable, |session| {
            session.db().swap_keyspaces(first, second)
        })?;
        let [one, other] = handles;
        assert_eq!([one.name(), other.name()], [second, first]);
        self.keyspaces.insert(second.to_owned(), one);
        self.keyspaces.insert(first.to_owned(), other);
        Ok(())
    }

    /// Gives the keyspace `name`, if it exists, the name `new`. For the model this is a durable commit that moves its
    /// entries. A name that another keyspace has is refused.
    fn rename_keyspace(&mut self, name: &str, new: &str) -> Result<()> {
        if name == new || !self.has_keyspace(name) {
            return Ok(());
        }
        let handle = self.keyspace(name)?;
        if self.has_keyspace(new) {
            return match handle.rename(new) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
                outcome => outcome.map(|()| panic!("two keyspaces have the name {new}")),
            };
        }
        let contents = self.visible()?;
        let removed = removals(&contents, name);
        let changes = removed.chain(insertions(&contents, name, new)).collect();
        self.change(changes, Status::Durable, |_| handle.rename(new))?;
        assert_eq!(handle.name(), new);
        self.keyspaces.remove(name);
        self.keyspaces.insert(new.to_owned(), handle);
        Ok(())
    }

    fn has_keyspace(&self, name: &str) -> bool {
        self.db().keyspace_names().iter().any(|own| own == name)
    }

    /// Takes a snapshot, begins iterators and keeps them.
    fn hold(&mut self) -> Result<()> {
        let contents = self.visible()?;
        let names = self.db().keyspace_names();
        let keyspaces = names.iter().map(|name| self.keyspace(name));
        let keyspaces = keyspaces.collect::<Result<_>>()?;
        let held = Held::new(self.db(), keyspaces, contents)?;
        self.held.push_back(held);
        Ok(())
    }

    /// Makes a checkpoint, checks that it shows what the database shows, and removes it.
    fn checkpoint(&mut self) -> Result<()> {
        self.end_persist()?;
        let expected = self.visible()?;
        let outcome = self.check_checkpoint(&expected);
        self.disk.edit(|image| {
            for path in image.files() {
                if path.starts_with(CHECKPOINT) {
                    image.remove(&path).expect("a listed file exists");
                }
            }
        });
        outcome
    }

    fn check_checkpoint(&self, expected: &Contents) -> Result<()> {
        if !self.setting.has_log() {
            self.lock_model().persisting();
        }
        self.db().checkpoint(CHECKPOINT)?;
        if !self.unresolved {
            self.lock_model().persisted();
        }
        let options = self.setting.on(&self.disk, &self.runtime);
        let copy = Db::open_read_only(CHECKPOINT, options)?;
        let found = contents(&copy)?;
        assert!(
            found == *expected,
            "a checkpoint shows something else: {}",
            differences(expected, &found).join("; ")
        );
        verify(&copy)?;
        copy.close()
    }

    /// Calls `commit` to make `changes`, which have `status` after its success.
    fn change(
        &mut self,
        changes: Vec<Change>,
        status: Status,
        commit: impl FnOnce(&Self) -> Result<()>,
    ) -> Result<()> {
        let status = match status {
            Status::Durable if !self.setting.has_log() => Status::Buffered,
            status => status,
        };
        if self.unresolved {
            // If the next change does not fail as poisoned, the failed one has changed nothing. Only an
            // error that poisons may leave its commit in the log.
            let result = commit(self);
            if let Err(error) = &result
                && error.kind() == ErrorKind::Poisoned
            {
                return result;
            }
            let mut model = self.lock_model();
            model.withdraw();
            model.begin(changes);
            drop(model);
            result?;
            self.unresolved = false;
        } else {
            self.lock_model().begin(changes);
            let result = commit(self);
            self.unresolved = result.is_err();
            result?;
        }
        self.lock_model().finish(status);
        Ok(())
    }

    /// What the open database must show.
    fn visible(&self) -> Result<Contents> {
        if self.unresolved {
            self.check()?;
            return self.contents();
        }
        Ok(self.lock_model().current())
    }

    fn commit(
        &self,
        keyspaces: &[Keyspace],
        changes: &[Change],
        durability: Durability,
    ) -> Result<()> {
        if let ([keyspace], [(_, key, effect)]) = (keyspaces, changes) {
            return match effect {
                Effect::InsertFor(value, ttl) => {
                    self.insert_for(keyspace, (key, value, *ttl), durability)
                }
                Effect::Insert(value) => keyspace.insert_with(key, value, durability),
                Effect::Remove => self.remove(keyspace, key, durability),
                Effect::Append(operand) => keyspace.merge_with(key, operand, durability),
                // No key is below this one.
                Effect::DeleteRange(end)
                    if end.is_empty() && *key == [0] && durability == Durability::Buffered =>
                {
                    keyspace.clear()
                }
                Effect::DeleteRange(end) => {
                    keyspace.delete_range_with::<&[u8]>(range(key, end), durability)
                }
            };
        }
        let mut batch = Batch::new();
        for (keyspace, (_, key, effect)) in keyspaces.iter().zip(changes) {
            match effect {
                Effect::Insert(value) => batch.insert(keyspace, key, value)?,
                Effect::InsertFor(value, ttl) => {
                    let ttl = Duration::from_millis(*ttl);
                    batch.insert_with_ttl(keyspace, key, value, ttl)?;
                }
                Effect::Remove => batch.remove(keyspace, key)?,
                Effect::Append(operand) => batch.merge(keyspace, key, operand)?,
                Effect::DeleteRange(end) => {
                    batch.delete_range::<&[u8]>(keyspace, range(key, end))?;
                }
            }
        }
        if changes.len().is_multiple_of(2) {
            // As another process would get it.
            batch = self.db().batch_from_bytes(&batch.to_bytes()?)?;
        }
        self.db().write_with(&batch, durability)
    }

    /// Removes `key`. Some removals return what the key had.
    fn remove(&self, keyspace: &Keyspace, key: &[u8], durability: Durability) -> Result<()> {
        if !self.may_read(durability) || !key.len().is_multiple_of(3) {
            return keyspace.remove_with(key, durability);
        }
        // A compaction filter may come in between.
        let name = keyspace.name();
        let seen = |value: Option<Vec<u8>>| value.and_then(|value| seen_value(&name, value));
        let before = keyspace.get(key)?;
        if before.is_none() {
            // What has expired would be left, for an open with an earlier clock to show.
            return keyspace.remove_with(key, durability);
        }
        let removed = keyspace.fetch_remove(key)?;
        assert!(seen(removed) == seen(before), "nobody else writes");
        Ok(())
    }

    /// Whether a write may read before it writes: it may then fail without a word about what is written. So it does not
    /// follow a commit with an open outcome. Changes of one key have the durability of the database.
    pub(super) fn may_read(&self, durability: Durability) -> bool {
        !self.unresolved && durability == Durability::Buffered
    }
}

/// Changes that remove the entries of the keyspace `name`.
fn removals(contents: &Contents, name: &str) -> impl Iterator<Item = Change> {
    let entries = contents.get(name).into_iter().flatten();
    entries.map(move |(key, _)| (name.to_owned(), key.clone(), Effect::Remove))
}

/// Changes that give the entries of the keyspace `from` to the keyspace `to`.
fn insertions(contents: &Contents, from: &str, to: &str) -> impl Iterator<Item = Change> {
    let entries = contents.get(from).into_iter().flatten();
    entries.map(move |(key, value)| (to.to_owned(), key.clone(), Effect::Insert(value.clone())))
}

/// The keys from `start` to before `end`; all behind it, if that is empty.
fn range<'a>(start: &'a [u8], end: &'a [u8]) -> (Bound<&'a [u8]>, Bound<&'a [u8]>) {
    let end = match end {
        [] => Bound::Unbounded,
        end => Bound::Excluded(end),
    };
    (Bound::Included(start), end)
}
