//! An inverted index: for each word the documents that have it. Adding a document reads no postings.
//!
//! `cargo run --release --example inverted_index`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::sync::Arc;

use windrow::operators::IdSet;
use windrow::{Batch, Db, Keyspace, Options};

const DOCUMENTS: u32 = 20_000;
const WORDS: u32 = 2_000;

/// The bytes of a document's number.
const ID_BYTES: usize = size_of::<u32>();

/// The words of a document: common ones have low numbers.
fn words(document: u32) -> impl Iterator<Item = String> {
    (0..80_u32).map(move |position| {
        let mixed = (document.wrapping_mul(0x9e37_79b9) ^ position.wrapping_mul(0x85eb_ca6b))
            .wrapping_mul(0xc2b2_ae35);
        let (first, second) = (mixed % WORDS, (mixed >> 16) % WORDS);
        format!("word{:04}", first.min(second))
    })
}

/// Adds a document to the postings of all its words, or of none.
fn index(db: &Db, postings: &Keyspace, document: u32) -> windrow::Result<()> {
    let mut batch = Batch::new();
    for word in words(document) {
        batch.merge(postings, word, document.to_be_bytes())?;
    }
    db.write(&batch)
}

/// The documents that have both words.
fn search(postings: &Keyspace, one: &str, other: &str) -> windrow::Result<Vec<u32>> {
    let of = |word: &str| postings.get(word).map(Option::unwrap_or_default);
    let (one, other) = (of(one)?, of(other)?);
    let other: Vec<_> = other.chunks_exact(ID_BYTES).collect();
    // Postings are sorted.
    let both = one.chunks_exact(ID_BYTES);
    let both = both.filter(|id| other.binary_search(id).is_ok());
    let number = |id: &[u8]| id.try_into().map_or(0, u32::from_be_bytes);
    Ok(both.map(number).collect())
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let operator = Arc::new(IdSet::new(ID_BYTES));
    let options = Options::default().with_merge_operator("postings", operator);
    let db = Db::open(folder.path(), options)?;
    let postings = db.keyspace("postings")?;
    for document in 0..DOCUMENTS {
        index(&db, &postings, document)?;
    }
    // Adding a document again changes nothing.
    index(&db, &postings, 1)?;

    let found = search(&postings, "word0000", "word0001")?;
    assert!(found.is_sorted());
    for document in &found {
        let has = |wanted: &str| words(*document).any(|word| word == wanted);
        assert!(has("word0000") && has("word0001"));
    }
    println!("{} documents have both words", found.len());

    db.flush()?;
    postings.compact_range::<&[u8]>(..)?;
    let mut bytes = 0;
    for entry in postings.iter()? {
        bytes += entry?.1.len() as u64;
    }
    let stats = db.stats();
    println!(
        "postings: {} KiB; callers wrote {} KiB in {} operands; the engine wrote {} KiB",
        bytes >> 10,
        stats.lifetime.user_bytes >> 10,
        stats.operands,
        stats.lifetime.written_bytes() >> 10
    );
    db.close()?;
    Ok(())
}
