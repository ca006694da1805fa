//! Terms: the words that `docs/glossary.md` retires occur nowhere in the repository.
//!
//! The document's section "Retired words" is the list. A word is refused in all its forms, alone and as a
//! part of a name (`DeadStretch`, `dead_stretch`), in code, comments, messages and documents.

use crate::report;
use crate::tree::{File, files, line};

const GLOSSARY: &str = "docs/glossary.md";

/// Files that may contain retired words: the beginning of their paths, the words, the reason.
const EXCEPTIONS: &[(&str, &[&str], &str)] = &[
    ("CHANGELOG.md", &["*"], "it describes earlier versions"),
    (GLOSSARY, &["*"], "it lists them"),
    (
        "crates/windrow/tests/tidy/glossary.rs",
        &["*"],
        "it tests for them",
    ),
    (
        "docs/kafka-streams.md",
        &["window", "windows"],
        "the windows of Kafka Streams",
    ),
    (
        "docs/platforms.md",
        &["window", "windows"],
        "the operating system",
    ),
    (
        "crates/windrow/src/vfs/os",
        &["window", "windows"],
        "the operating system",
    ),
    (".ci/", &["window", "windows"], "the operating system"),
    (
        "crates/windrow-sim/src/stress/bank.rs",
        &["account"],
        "the accounts of a bank",
    ),
    (
        "crates/windrow/examples/batches_and_snapshots.rs",
        &["account"],
        "the accounts of a bank",
    ),
    (
        "crates/windrow/examples/bank.rs",
        &["account"],
        "the accounts of a bank",
    ),
    (
        "crates/windrow-sim/tests/",
        &["account"],
        "the accounts of a bank",
    ),
];

/// Names of Rust, its libraries and other programs that contain a retired word.
const RUST: &[&str] = &[
    ".fold(",
    ".try_fold(",
    ".windows(",
    "--window-size",
    "collections::",
    "collection::",
];

/// Terms of the glossary that contain a retired word.
const TERMS: &[[&str; 2]] = &[["garbage", "collection"], ["memory", "accounting"]];

/// A word or phrase of the glossary's last table, and what to say instead.
struct Retired {
    words: Vec<String>,
    instead: String,
}

impl Retired {
    /// Whether the phrase begins at `tokens[at]`; its last word may have any ending.
    fn is_at(&self, tokens: &[Token<'_>], at: usize) -> bool {
        let Some(found) = tokens.get(at..at + self.words.len()) else {
            return false;
        };
        let last = self.words.len() - 1;
        self.words
            .iter()
            .zip(found)
            .enumerate()
            .all(|(index, (word, token))| {
                token.text == *word || (index == last && is_form(&token.text, word))
            })
    }
}

/// Whether `text` is `word` with an ending of a verb or a noun.
fn is_form(text: &str, word: &str) -> bool {
    let stem = word.strip_suffix('e').unwrap_or(word);
    let ending = text.strip_prefix(word).or_else(|| text.strip_prefix(stem));
    ending.is_some_and(|ending| ["s", "d", "ed", "es", "ing", "ings"].contains(&ending))
}

/// The retired words of the glossary's last table.
fn retired(glossary: &str) -> Vec<Retired> {
    let section = glossary.split("## Retired words").nth(1);
    let rows = section.expect("the glossary retires words").lines();
    let rows = rows.filter(|row| row.starts_with('|')).skip(2);
    let cells = rows.map(|row| {
        let mut cells = row.trim_matches('|').split('|').map(str::trim);
        (
            cells.next().unwrap_or_default(),
            cells.next().unwrap_or_default(),
        )
    });
    cells
        .flat_map(|(words, instead)| {
            words.split(", ").map(move |words| Retired {
                words: words.split_whitespace().map(str::to_lowercase).collect(),
                instead: instead.to_owned(),
            })
        })
        .collect()
}

/// A word of a text or a part of a name, in small letters.
struct Token<'a> {
    text: String,
    position: usize,
    line: &'a str,
}

/// The words of `text`, and the parts of its names: `SortedRun` and `sorted_run` are two each.
fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens: Vec<Token<'_>> = Vec::new();
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        let mut before = ' ';
        for (at, character) in line.char_indices() {
            if character.is_ascii_alphabetic() {
                let begins = !before.is_ascii_alphabetic()
                    || (character.is_ascii_uppercase() && before.is_ascii_lowercase());
                if begins {
                    tokens.push(Token {
                        text: String::new(),
                        position: offset + at,
                        line,
                    });
                }
                if let Some(last) = tokens.last_mut() {
                    last.text.push(character.to_ascii_lowercase());
                }
            }
            before = character;
        }
        offset += line.len();
    }
    tokens
}

fn excuses(path: &str, word: &str) -> bool {
    EXCEPTIONS.iter().any(|(begin, words, _)| {
        path.starts_with(begin) && (words.contains(&"*") || words.contains(&word))
    })
}

fn faults(file: &File, retired: &[Retired]) -> Vec<String> {
    let Some(text) = file.text() else {
        return Vec::new();
    };
    let tokens = tokens(text);
    let mut faults = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        for word in retired.iter().filter(|word| word.is_at(&tokens, at)) {
            let phrase = word.words.join(" ");
            let is_rust = RUST
                .iter()
                .any(|name| token.line.contains(name) && name.contains(&*token.text));
            let before = at.checked_sub(1).map_or("", |at| &*tokens[at].text);
            let is_term = TERMS
                .iter()
                .any(|[first, second]| before == *first && token.text.starts_with(second));
            if !is_rust && !is_term && !excuses(&file.path, &phrase) {
                faults.push(format!(
                    "{}:{}: `{phrase}` is retired; say {}",
                    file.path,
                    line(text, token.position),
                    word.instead
                ));
            }
        }
    }
    faults
}

#[test]
fn retired_words_occur_nowhere() {
    let files = files();
    let glossary = files.iter().find(|file| file.path == GLOSSARY);
    let retired = retired(glossary.and_then(File::text).expect("there is a glossary"));
    assert!(retired.len() > 20, "the glossary retires its words");
    let is_ours = |file: &&File| {
        [".rs", ".md", ".toml", ".sh", ".patch", ".yml"]
            .iter()
            .any(|end| file.path.ends_with(end))
            || file.path.ends_with("/run")
    };
    let faults: Vec<String> = files
        .iter()
        .filter(is_ours)
        .flat_map(|file| faults(file, &retired))
        .collect();
    report("words that docs/glossary.md retires", &faults);
}

/// A planted word is found in each form, and other words are not.
#[test]
fn planted_words_are_found() {
    let retired =
        retired("## Retired words\n| old | new |\n|---|---|\n| squeeze, dead list | merge |\n");
    let count = |text: &str| {
        let file = File {
            path: "a.rs".to_owned(),
            bytes: text.as_bytes().to_vec(),
        };
        faults(&file, &retired).len()
    };
    assert_eq!(
        count("// It squeezes,\nfn squeeze_file() { SqueezeJob::squeezing() }"),
        4
    );
    assert_eq!(count("a dead\nlist, DeadList, dead_lists"), 3);
    assert_eq!(count("a list of the dead; squeak"), 0);
}
