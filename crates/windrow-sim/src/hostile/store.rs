//! A store of backups as an attacker makes it: a manifest with a sound checksum, whose pieces have the names of their bytes.

use super::bytes::{change, put_prefixed, put_varint, take, take_prefixed, take_varint};
use super::choices::Choices;
use super::forge::{Files, Forgery};
use super::logs::{change_edit, read_edit, write_edit};
use xxhash_rust::xxh3::{xxh3_64_with_seed, xxh3_128};

/// The bytes of a manifest before its newest sequence number.
const FRONT_BYTES: u64 = 8 + 4 + 8 + 16;

/// A piece: its length and its checksum.
type Piece = (u64, [u8; 16]);

/// The manifest of a backup.
#[derive(Debug, Clone)]
struct Manifest {
    front: Vec<u8>,
    sequence: u64,
    files: Vec<(Vec<u8>, Vec<Piece>)>,
    edit: Vec<u8>,
}

impl Manifest {
    fn read(bytes: &[u8]) -> Option<Self> {
        let (mut rest, _) = bytes.split_last_chunk::<8>()?;
        let front = take(&mut rest, FRONT_BYTES)?.to_vec();
        let sequence = take_varint(&mut rest)?;
        let mut files = Vec::new();
        for _ in 0..take_varint(&mut rest)? {
            let name = take_prefixed(&mut rest)?.to_vec();
            let mut pieces = Vec::new();
            for _ in 0..take_varint(&mut rest)? {
                let length = take_varint(&mut rest)?;
                pieces.push((length, *take(&mut rest, 16)?.first_chunk()?));
            }
            files.push((name, pieces));
        }
        let edit = take_prefixed(&mut rest)?.to_vec();
        Some(Self {
            front,
            sequence,
            files,
            edit,
        })
    }

    /// Its bytes but for the checksum.
    fn write(&self) -> Vec<u8> {
        let mut bytes = self.front.clone();
        put_varint(&mut bytes, self.sequence);
        put_varint(&mut bytes, self.files.len() as u64);
        for (name, pieces) in &self.files {
            put_prefixed(&mut bytes, name);
            put_varint(&mut bytes, pieces.len() as u64);
            for (length, checksum) in pieces {
                put_varint(&mut bytes, *length);
                bytes.extend_from_slice(checksum);
            }
        }
        put_prefixed(&mut bytes, &self.edit);
        bytes
    }

    /// The bytes of a file, from `store`.
    fn content(&self, file: usize, store: &Files) -> Option<Vec<u8>> {
        let mut content = Vec::new();
        for piece in &self.files[file].1 {
            content.extend_from_slice(store.get(&name_of(*piece))?);
        }
        Some(content)
    }
}

/// The name of the object of a piece.
fn name_of((length, checksum): Piece) -> String {
    let checksum = u128::from_le_bytes(checksum);
    format!("{checksum:032x}-{length}.piece")
}

/// Forges the newest backup of `store`. `keys` are those of the database.
pub(super) fn forge_store(store: &mut Files, keys: &[Vec<u8>], choices: &mut Choices<'_>) {
    let names = store.keys().filter(|name| name.ends_with(".backup"));
    let Some(name) = names.max().cloned() else {
        return;
    };
    let number = name
        .split('.')
        .next()
        .and_then(|digits| digits.parse().ok());
    let Some(mut manifest) = Manifest::read(&store[&name]) else {
        return;
    };
    for _ in 0..=choices.below(3) {
        match choices.below(6) {
            0 => change_files(&mut manifest, choices),
            1 => {
                if let Some(mut records) = read_edit(&manifest.edit) {
                    change_edit(&mut records, choices);
                    manifest.edit = write_edit(&records);
                }
            }
            2 => {
                let names: Vec<String> = store.keys().cloned().collect();
                if let Some(name) = choices.pick(&names)
                    && let Some(bytes) = store.get_mut(name)
                {
                    change(bytes, choices);
                }
            }
            _ => forge_contents(&mut manifest, store, keys, choices),
        }
    }
    let mut bytes = manifest.write();
    if choices.is_one_in(4) {
        change(&mut bytes, choices);
    }
    let sum = xxh3_64_with_seed(&bytes, number.unwrap_or(0));
    bytes.extend_from_slice(&sum.to_le_bytes());
    store.insert(name, bytes);
}

/// A file that has its pieces again and again has no more of them.
const PIECES_MAX: usize = 10_000;

/// Changes which files and pieces there are.
fn change_files(manifest: &mut Manifest, choices: &mut Choices<'_>) {
    if manifest.files.is_empty() {
        return;
    }
    let at = choices.below(manifest.files.len());
    let file = &mut manifest.files[at];
    match choices.below(5) {
        0 => {
            let times = 1 + choices.below(200);
            file.1 = file.1.repeat(times);
            file.1.truncate(PIECES_MAX);
        }
        1 => drop(file.1.pop()),
        2 => {
            const NAMES: [&str; 8] = [
                "../escaped.table",
                "/data/escaped.table",
                "CURRENT",
                "LOCK",
                "000001.manifest",
                "000007.table/../../escaped",
                "0x7.table",
                "00000000000000000007.table",
            ];
            file.0 = choices.pick(&NAMES).unwrap_or(&"").as_bytes().to_vec();
        }
        3 => change(&mut file.0, choices),
        _ => {
            if let Some(piece) = file.1.first_mut() {
                piece.0 = super::bytes::number(choices);
            }
        }
    }
}

/// Forges the files of the backup as those of a database, and stores each changed one as one piece.
fn forge_contents(
    manifest: &mut Manifest,
    store: &mut Files,
    keys: &[Vec<u8>],
    choices: &mut Choices<'_>,
) {
    let mut files = Files::new();
    for at in 0..manifest.files.len() {
        let name = String::from_utf8_lossy(&manifest.files[at].0).into_owned();
        files.extend(manifest.content(at, store).map(|content| (name, content)));
    }
    let before = files.clone();
    let mut forgery = Forgery::with_state(files, keys, &manifest.edit);
    forgery.change(choices);
    if let Some(edit) = forgery.state() {
        manifest.edit = edit;
    }
    for (name, pieces) in &mut manifest.files {
        let name = String::from_utf8_lossy(name).into_owned();
        if let Some(content) = forgery.files.get(&name)
            && before.get(&name) != Some(content)
            && !content.is_empty()
        {
            let piece = (content.len() as u64, xxh3_128(content).to_le_bytes());
            *pieces = vec![piece];
            store.insert(name_of(piece), content.clone());
        }
    }
}
