//! A store of backups as an attacker makes it: a manifest with a sound checksum, whose pieces have the names of their bytes.

use super::bytes::{change, number, put_prefixed, put_varint, take, take_prefixed, take_varint};
use super::choices::Choices;
use super::forge::{Files, Forgery};
use super::logs::{change_edit, read_edit, write_edit};
use xxhash_rust::xxh3::{xxh3_64_with_seed, xxh3_128};

/// The bytes of a manifest before its newest sequence number.
const FRONT_BYTES: u64 = 8 + 4 + 8 + 16;

/// The bytes of a manifest before its version.
const MAGIC_BYTES: usize = 8;

/// A piece of a file or of a stretch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    length: u64,
    checksum: [u8; 16],
}

impl Piece {
    /// The name of its object.
    pub(super) fn name(self) -> String {
        let checksum = u128::from_le_bytes(self.checksum);
        format!("{checksum:032x}-{}.piece", self.length)
    }
}

/// Takes the count of pieces and the pieces.
pub(super) fn take_pieces(bytes: &mut &[u8]) -> Option<Vec<Piece>> {
    let mut pieces = Vec::new();
    for _ in 0..take_varint(bytes)? {
        let length = take_varint(bytes)?;
        let checksum = *take(bytes, 16)?.first_chunk()?;
        pieces.push(Piece { length, checksum });
    }
    Some(pieces)
}

/// Appends the count of pieces and the pieces.
pub(super) fn put_pieces(bytes: &mut Vec<u8>, pieces: &[Piece]) {
    put_varint(bytes, pieces.len() as u64);
    for piece in pieces {
        put_varint(bytes, piece.length);
        bytes.extend_from_slice(&piece.checksum);
    }
}

/// Puts `content` into `store` as one piece.
pub(super) fn put_object(store: &mut Files, content: &[u8]) -> Piece {
    let piece = Piece {
        length: content.len() as u64,
        checksum: xxh3_128(content).to_le_bytes(),
    };
    store.insert(piece.name(), content.to_vec());
    piece
}

/// The manifest of a backup.
#[derive(Debug, Clone)]
struct Manifest {
    front: Vec<u8>,
    sequence: u64,
    files: Vec<(Vec<u8>, Vec<Piece>)>,
    edit: Vec<u8>,
    /// How it is bound to an archive, if the database has one.
    binding: Vec<u8>,
}

impl Manifest {
    fn read(bytes: &[u8]) -> Option<Self> {
        let (mut rest, _) = bytes.split_last_chunk::<8>()?;
        let front = take(&mut rest, FRONT_BYTES)?.to_vec();
        let sequence = take_varint(&mut rest)?;
        let mut files = Vec::new();
        for _ in 0..take_varint(&mut rest)? {
            let name = take_prefixed(&mut rest)?.to_vec();
            files.push((name, take_pieces(&mut rest)?));
        }
        let edit = take_prefixed(&mut rest)?.to_vec();
        Some(Self {
            front,
            sequence,
            files,
            edit,
            binding: rest.to_vec(),
        })
    }

    /// Its bytes but for the checksum.
    fn write(&self) -> Vec<u8> {
        let mut bytes = self.front.clone();
        put_varint(&mut bytes, self.sequence);
        put_varint(&mut bytes, self.files.len() as u64);
        for (name, pieces) in &self.files {
            put_prefixed(&mut bytes, name);
            put_pieces(&mut bytes, pieces);
        }
        put_prefixed(&mut bytes, &self.edit);
        bytes.extend_from_slice(&self.binding);
        bytes
    }

    /// The bytes of a file, from `store`.
    fn content(&self, file: usize, store: &Files) -> Option<Vec<u8>> {
        let mut content = Vec::new();
        for piece in &self.files[file].1 {
            content.extend_from_slice(store.get(&piece.name())?);
        }
        Some(content)
    }
}

/// Forges the newest backup of `store`. `keys` are those of the database.
pub(super) fn forge_store(store: &mut Files, keys: &[Vec<u8>], choices: &mut Choices<'_>) {
    let Some((name, mut manifest)) = newest(store) else {
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
    put_manifest(store, name, bytes);
}

/// The manifest of the newest backup, and its name.
fn newest(store: &Files) -> Option<(String, Manifest)> {
    let names = store.keys().filter(|name| name.ends_with(".backup"));
    let name = names.max().cloned()?;
    let manifest = Manifest::read(&store[&name])?;
    Some((name, manifest))
}

/// Seals the bytes of a manifest.
fn put_manifest(store: &mut Files, name: String, mut bytes: Vec<u8>) {
    let digits = name.split('.').next();
    let number = digits.and_then(|digits| digits.parse().ok());
    let sum = xxh3_64_with_seed(&bytes, number.unwrap_or(0));
    bytes.extend_from_slice(&sum.to_le_bytes());
    store.insert(name, bytes);
}

/// Changes how the newest backup of `store` is bound to an archive, or whether it says so.
pub(super) fn change_binding(store: &mut Files, choices: &mut Choices<'_>) {
    let Some((name, mut manifest)) = newest(store) else {
        return;
    };
    match choices.below(4) {
        0 => manifest.front[MAGIC_BYTES] = choices.byte(),
        1 => manifest.sequence = number(choices),
        _ => change(&mut manifest.binding, choices),
    }
    let bytes = manifest.write();
    put_manifest(store, name, bytes);
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
        way => change_pieces(&mut file.1, way, choices),
    }
}

/// Changes which pieces a file or a stretch has, in one of three ways.
pub(super) fn change_pieces(pieces: &mut Vec<Piece>, way: usize, choices: &mut Choices<'_>) {
    match way {
        0 => {
            let times = 1 + choices.below(200);
            *pieces = pieces.repeat(times);
            pieces.truncate(PIECES_MAX);
        }
        1 => drop(pieces.pop()),
        _ => {
            if let Some(piece) = pieces.first_mut() {
                piece.length = number(choices);
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
            *pieces = vec![put_object(store, content)];
        }
    }
}
