//! An archive as an attacker makes it: descriptions of stretches with sound checksums, whose items have the digest that they
//! record.

use super::bytes::{change, number, put_prefixed, put_varint, take, take_prefixed, take_varint};
use super::choices::Choices;
use super::forge::Files;
#[cfg(test)]
use super::logs::Record;
use super::logs::{change_edit, read_edit, write_edit};
use super::store::{
    Piece, change_binding, change_pieces, forge_store, put_object, put_pieces, take_pieces,
};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

/// The bytes of a description before its history.
const FRONT_BYTES: u64 = 8 + 4;

/// The kinds of items.
const BATCH: u8 = 0;
const KEYSPACE: u8 = 2;

/// The description of a stretch.
#[derive(Debug, Clone)]
struct Stretch {
    front: Vec<u8>,
    history: [u8; 16],
    first: u64,
    last: u64,
    moment: [u8; 8],
    digest: [u8; 16],
    pieces: Vec<Piece>,
    /// The count of the notes, and the notes.
    notes: Vec<u8>,
}

/// A part of a stretch.
#[derive(Debug, Clone)]
struct Item {
    kind: u8,
    /// The checksum of its record; none of a keyspace.
    record: Vec<u8>,
    body: Vec<u8>,
}

impl Stretch {
    fn read(bytes: &[u8]) -> Option<Self> {
        let (mut rest, _) = bytes.split_last_chunk::<8>()?;
        Some(Self {
            front: take(&mut rest, FRONT_BYTES)?.to_vec(),
            history: *take(&mut rest, 16)?.first_chunk()?,
            first: take_varint(&mut rest)?,
            last: take_varint(&mut rest)?,
            moment: *take(&mut rest, 8)?.first_chunk()?,
            digest: *take(&mut rest, 16)?.first_chunk()?,
            pieces: take_pieces(&mut rest)?,
            notes: rest.to_vec(),
        })
    }

    /// Its bytes but for the checksum.
    fn write(&self) -> Vec<u8> {
        let mut bytes = self.front.clone();
        bytes.extend_from_slice(&self.history);
        put_varint(&mut bytes, self.first);
        put_varint(&mut bytes, self.last);
        bytes.extend_from_slice(&self.moment);
        bytes.extend_from_slice(&self.digest);
        put_pieces(&mut bytes, &self.pieces);
        bytes.extend_from_slice(&self.notes);
        bytes
    }

    fn name(&self) -> String {
        let history = u128::from_le_bytes(self.history);
        format!("{history:032x}-{}-{}.archive", self.first, self.last)
    }

    /// Its items, from `store`.
    fn items(&self, store: &Files) -> Option<Vec<Item>> {
        let mut items = Vec::new();
        for piece in &self.pieces {
            let mut rest = &store.get(&piece.name())?[..];
            while let Some((kind, behind)) = rest.split_first() {
                rest = behind;
                let sum = if *kind == KEYSPACE { 0 } else { 8 };
                items.push(Item {
                    kind: *kind,
                    record: take(&mut rest, sum)?.to_vec(),
                    body: take_prefixed(&mut rest)?.to_vec(),
                });
            }
        }
        Some(items)
    }

    /// Puts `items` into one piece in `store`, and follows them in the digest and the last sequence number.
    fn put_items(&mut self, items: &[Item], store: &mut Files) {
        let (mut bytes, mut records, mut numbers) = (Vec::new(), Vec::new(), 0);
        for item in items {
            bytes.push(item.kind);
            bytes.extend_from_slice(&item.record);
            put_prefixed(&mut bytes, &item.body);
            records.extend_from_slice(&item.record);
            numbers += match item.kind {
                BATCH => take_varint(&mut &item.body[..]).unwrap_or(0) / 4,
                KEYSPACE => 0,
                _ => 1,
            };
        }
        self.digest = match &records[..] {
            [] => [0; 16],
            records => xxh3_128(records).to_le_bytes(),
        };
        self.last = self.first.saturating_add(numbers).saturating_sub(1);
        self.pieces = match &bytes[..] {
            [] => Vec::new(),
            bytes => vec![put_object(store, bytes)],
        };
    }
}

/// Changes the edits of all items of all stretches of `store`, in their order.
#[cfg(test)]
pub(super) fn change_each_edit(store: &mut Files, mut edit: impl FnMut(&mut Vec<Record>)) {
    let objects = store.iter().filter(|(name, _)| name.ends_with(".archive"));
    let stretches = objects.filter_map(|(_, bytes)| Stretch::read(bytes));
    let mut stretches: Vec<Stretch> = stretches.collect();
    stretches.sort_by_key(|stretch| stretch.first);
    for mut stretch in stretches {
        let mut items = stretch.items(store).unwrap_or_default();
        for item in items.iter_mut().filter(|item| item.kind != BATCH) {
            let mut records = read_edit(&item.body).unwrap_or_default();
            edit(&mut records);
            item.body = write_edit(&records);
        }
        stretch.put_items(&items, store);
        store.insert(stretch.name(), sealed(stretch.write()));
    }
}

/// Forges backups and stretches of `store`. `keys` are those of the database.
pub(super) fn forge_archive(store: &mut Files, keys: &[Vec<u8>], choices: &mut Choices<'_>) {
    for _ in 0..=choices.below(3) {
        match choices.below(8) {
            0 => forge_store(store, keys, choices),
            1 => change_binding(store, choices),
            _ => forge_stretch(store, choices),
        }
    }
}

fn forge_stretch(store: &mut Files, choices: &mut Choices<'_>) {
    let names = store.keys().filter(|name| name.ends_with(".archive"));
    let names: Vec<String> = names.cloned().collect();
    let Some(name) = choices.pick(&names) else {
        return;
    };
    let Some(mut stretch) = Stretch::read(&store[name]) else {
        return;
    };
    match choices.below(10) {
        0 => {
            let way = choices.below(3);
            change_pieces(&mut stretch.pieces, way, choices);
        }
        1 => stretch.first = number(choices),
        2 => stretch.last = number(choices),
        3 => stretch.moment = number(choices).to_le_bytes(),
        4 | 5 => change(&mut stretch.notes, choices),
        _ => {
            if let Some(mut items) = stretch.items(store) {
                change_items(&mut items, choices);
                stretch.put_items(&items, store);
            }
        }
    }
    let mut bytes = stretch.write();
    if choices.is_one_in(8) {
        change(&mut bytes, choices);
    }
    // Its old description may stay beside it.
    if !choices.is_one_in(8) {
        store.remove(name);
    }
    store.insert(stretch.name(), sealed(bytes));
}

/// A description with its checksum.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let sum = xxh3_64(&bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes
}

/// Changes an item, or which items there are.
fn change_items(items: &mut Vec<Item>, choices: &mut Choices<'_>) {
    if items.is_empty() {
        return;
    }
    let at = choices.below(items.len());
    match choices.below(12) {
        0 => drop(items.remove(at)),
        1 => {
            let times = 1 + choices.below(40);
            let repeated = vec![items[at].clone(); times];
            items.splice(at..at, repeated);
        }
        2 => {
            let other = choices.below(items.len());
            items.swap(at, other);
        }
        3 => items[at].kind = choices.byte(),
        4 => change(&mut items[at].record, choices),
        5 | 6 if items[at].kind != BATCH => change(&mut items[at].body, choices),
        _ if items[at].kind != BATCH => {
            if let Some(mut records) = read_edit(&items[at].body) {
                change_edit(&mut records, choices);
                items[at].body = write_edit(&records);
            }
        }
        _ => change(&mut items[at].body, choices),
    }
}
