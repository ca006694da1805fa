//! One client: an open transaction and what it has seen.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::{KEYS, REGISTERS, Run, decode, decode_key, encode, encode_key, write_of};
use crate::histories::{List, Step};
use windrow::{Isolation, Keyspace, Result, Savepoint, Transaction};

/// A client between two of its steps.
#[derive(Default)]
pub(super) struct Client {
    open: Option<Open>,
}

struct Open {
    transaction: Transaction,
    begun: u64,
    /// Whether it may append operands. Under snapshot isolation their place is not that of the snapshot, so only a
    /// transaction that covers its reads has one place in the order.
    merges: bool,
    steps: Vec<Step>,
    savepoint: Option<(Savepoint, usize)>,
}

impl Client {
    /// Drops the open transaction.
    pub(super) fn forget(&mut self) {
        self.open = None;
    }

    /// Takes the next step. A commit ends the transaction, whatever comes of it.
    pub(super) fn step(&mut self, run: &mut Run) -> Result<()> {
        let Some(open) = &mut self.open else {
            let begun = run.tick();
            let is_locking = run.random.chance(1, 3);
            let db = &run.store().db;
            self.open = Some(Open {
                transaction: if is_locking {
                    db.locking_transaction()
                } else {
                    db.transaction_with(run.isolation)
                },
                begun,
                merges: is_locking || run.isolation == Isolation::Serializable,
                steps: Vec::new(),
                savepoint: None,
            });
            return Ok(());
        };
        let key = run.random.below(KEYS);
        match run.random.below(20) {
            0..4 => open.read(run, key),
            4..6 => open.read_several(run, key),
            6..9 => open.scan(run, key),
            9 => open.rewrite(run, key),
            10 if open.merges && key < REGISTERS => open.merge(run, key),
            10..15 => open.write(run, key),
            15 => {
                let savepoint = open.transaction.savepoint();
                open.savepoint = Some((savepoint, open.steps.len()));
                Ok(())
            }
            16 => {
                let Some((savepoint, length)) = open.savepoint else {
                    return Ok(());
                };
                // What was read since may show what is undone.
                open.steps.truncate(length);
                open.transaction.roll_back_to(savepoint)
            }
            17 if run.random.chance(1, 3) => {
                self.open = None;
                Ok(())
            }
            _ => {
                let Some(open) = self.open.take() else {
                    return Ok(());
                };
                if run.random.chance(1, 5) && run.may_prepare() {
                    return run.prepare(open.transaction, open.steps, open.begun);
                }
                let durability = run.durability();
                let outcome = open.transaction.commit_with(durability);
                run.record(open.steps, open.begun, durability, outcome)
            }
        }
    }
}

impl Open {
    fn read(&mut self, run: &mut Run, key: u64) -> Result<()> {
        let keyspace = run.store().keyspace(key).clone();
        self.read_list(run, &keyspace, key).map(drop)
    }

    fn read_list(&mut self, run: &mut Run, keyspace: &Keyspace, key: u64) -> Result<List> {
        let (transaction, encoded) = (&self.transaction, encode_key(key));
        let found = match run.random.below(4) {
            0 => transaction.get_for_update(keyspace, encoded)?,
            1 => transaction.get_for_share(keyspace, encoded)?,
            _ => transaction.get(keyspace, encoded)?,
        };
        let list = decode(&found.unwrap_or_default());
        self.steps.push(Step::Read(key, list.clone()));
        Ok(list)
    }

    /// Reads the keys of one keyspace from `first` on.
    fn read_several(&mut self, run: &mut Run, first: u64) -> Result<()> {
        let keys: Vec<_> = (first..KEYS).step_by(2).collect();
        let encoded: Vec<_> = keys.iter().map(|key| encode_key(*key)).collect();
        let found = self
            .transaction
            .multi_get(run.store().keyspace(first), &encoded)?;
        for (key, list) in keys.into_iter().zip(found) {
            self.steps
                .push(Step::Read(key, decode(&list.unwrap_or_default())));
        }
        Ok(())
    }

    /// Writes to `key`, after a read of it unless a register is replaced unseen.
    fn write(&mut self, run: &mut Run, key: u64) -> Result<()> {
        let keyspace = run.store().keyspace(key).clone();
        let is_unseen = key >= REGISTERS && run.random.chance(1, 4);
        let list = if is_unseen {
            List::new()
        } else {
            self.read_list(run, &keyspace, key)?
        };
        let element = run.element();
        self.insert(&keyspace, key, &list, element)
    }

    /// Writes `element` to `key`, which has `list`.
    fn insert(&mut self, keyspace: &Keyspace, key: u64, list: &[u64], element: u64) -> Result<()> {
        let (step, value) = write_of(key, list, element);
        self.transaction.insert(keyspace, encode_key(key), value)?;
        self.steps.push(step);
        Ok(())
    }

    /// Appends to a list without a read.
    fn merge(&mut self, run: &mut Run, key: u64) -> Result<()> {
        let element = run.element();
        let keyspace = run.store().keyspace(key);
        self.transaction
            .merge(keyspace, encode_key(key), encode(&[element]))?;
        self.steps.push(Step::Append(key, element));
        Ok(())
    }

    /// Deletes a range of keys from `first` on, and writes all of them again: to the first one and to registers an element
    /// more.
    fn rewrite(&mut self, run: &mut Run, first: u64) -> Result<()> {
        let keyspace = run.store().keyspace(first).clone();
        let end = first + 1 + run.random.below(KEYS);
        let bounds = encode_key(first)..encode_key(end);
        let mut lists = BTreeMap::from([(first, List::new())]);
        for entry in self.transaction.range(&keyspace, bounds.clone())? {
            let (key, list) = entry?;
            lists.insert(decode_key(&key), decode(&list));
        }
        for key in (first..end.min(KEYS)).step_by(2) {
            let list = lists.get(&key).cloned().unwrap_or_default();
            self.steps.push(Step::Read(key, list));
        }
        self.transaction.delete_range(&keyspace, bounds)?;
        for (key, list) in lists {
            if key == first || key >= REGISTERS {
                let element = run.element();
                self.insert(&keyspace, key, &list, element)?;
            } else {
                self.transaction
                    .insert(&keyspace, encode_key(key), encode(&list))?;
            }
        }
        Ok(())
    }

    /// Moves a cursor over a part of a keyspace. It has read every key that it has passed, absent ones too.
    fn scan(&mut self, run: &mut Run, start: u64) -> Result<()> {
        let keyspace = run.store().keyspace(start).clone();
        let limit = run.random.below(4);
        let is_backward = run.random.chance(1, 2);
        let end = start + run.random.below(KEYS);
        let bounds = (
            Bound::Included(encode_key(start)),
            Bound::Excluded(encode_key(end)),
        );
        let mut cursor = self.transaction.range_cursor(&keyspace, bounds)?;
        let mut found = BTreeMap::new();
        let mut is_valid = if is_backward {
            cursor.seek_to_last()?
        } else {
            cursor.seek_to_first()?
        };
        let (mut first, mut last) = (start, end);
        for _ in 0..=limit {
            if !is_valid {
                break;
            }
            let key = decode_key(cursor.key());
            found.insert(key, decode(cursor.value()?));
            if is_backward {
                first = key;
                is_valid = cursor.prev()?;
            } else {
                last = key + 1;
                is_valid = cursor.next()?;
            }
        }
        if !is_valid {
            (first, last) = (start, end);
        }
        drop(cursor);
        let passed = (first..last.min(KEYS)).filter(|key| key % 2 == start % 2);
        for key in passed {
            let list = found.remove(&key).unwrap_or_default();
            self.steps.push(Step::Read(key, list));
        }
        Ok(())
    }
}
