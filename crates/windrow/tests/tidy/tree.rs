//! The files of the repository, and source text without comments and strings.

use std::path::{Path, PathBuf};

/// A file of the repository.
pub(crate) struct File {
    /// The path from the root of the repository, with `/` between names.
    pub(crate) path: String,
    pub(crate) bytes: Vec<u8>,
}

impl File {
    /// The content, if it is text.
    pub(crate) fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.bytes).ok()
    }

    pub(crate) fn has_extension(&self, extension: &str) -> bool {
        Path::new(&self.path)
            .extension()
            .is_some_and(|found| found == extension)
    }
}

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every file of the repository in the order of paths, without build products.
pub(crate) fn files() -> Vec<File> {
    let mut files = Vec::new();
    walk(&root(), "", &mut files);
    files.sort_by(|left, right| left.path.cmp(&right.path));
    assert!(files.len() > 10, "the repository was not found");
    files
}

fn walk(directory: &Path, prefix: &str, files: &mut Vec<File>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let name = entry
            .file_name()
            .into_string()
            .expect("file names are text");
        let path = format!("{prefix}{name}");
        let kind = entry.file_type().unwrap();
        // Fuzzers write what git ignores.
        let is_fuzzed = prefix == "fuzz/" && ["corpus", "artifacts"].contains(&&*name);
        if kind.is_dir() && name != "target" && name != ".git" && !is_fuzzed {
            walk(&entry.path(), &format!("{path}/"), files);
        } else if kind.is_file() && name != ".git" {
            let bytes = std::fs::read(entry.path()).unwrap();
            files.push(File { path, bytes });
        }
    }
}

/// The Rust files of the repository: path and text.
pub(crate) fn rust_files() -> Vec<(String, String)> {
    let files = files().into_iter().filter(|file| file.has_extension("rs"));
    files
        .map(|file| {
            let text = file.text().expect("source is text").to_owned();
            (file.path, text)
        })
        .collect()
}

/// `text` with comments and the insides of string literals blanked, line by line as before.
pub(crate) fn code(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(length) = raw_string(rest) {
            length
        } else if character == '"' {
            string(rest)
        } else if let Some(length) = char_literal(rest) {
            length
        } else {
            code.push(character);
            rest = &rest[character.len_utf8()..];
            continue;
        };
        let blank = |character| if character == '\n' { '\n' } else { ' ' };
        code.extend(rest[..skipped].chars().map(blank));
        rest = &rest[skipped..];
    }
    code
}

/// The length of the string literal that `text` begins with.
fn string(text: &str) -> usize {
    let mut escaped = false;
    for (position, character) in text.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return position + 1,
            _ => {}
        }
    }
    text.len()
}

/// The length of the raw string literal that `text` begins with, if it does.
fn raw_string(text: &str) -> Option<usize> {
    let after = text.strip_prefix('r')?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    let body = after[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let length = body
        .find(&end)
        .map_or(body.len(), |found| found + end.len());
    Some(1 + hashes + 1 + length)
}

/// The length of the character literal that `text` begins with, if it does; a lifetime is none.
fn char_literal(text: &str) -> Option<usize> {
    let body = text.strip_prefix('\'')?;
    let first = body.chars().next()?;
    let length = if first == '\\' {
        1 + body[1..].chars().next()?.len_utf8() + body[2..].find('\'')?
    } else {
        first.len_utf8()
    };
    body[length..].starts_with('\'').then_some(length + 2)
}

/// Whether `character` can be part of a name.
pub(crate) fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// The positions of `word` in `code` as a whole word.
pub(crate) fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    code.match_indices(word)
        .map(|(position, _)| position)
        .filter(move |&position| {
            !code[..position].ends_with(is_word)
                && !code[position + word.len()..].starts_with(is_word)
        })
}

/// The number of the line at `position`, from 1.
pub(crate) fn line(text: &str, position: usize) -> usize {
    text[..position].matches('\n').count() + 1
}

#[test]
fn code_is_found_between_comments_and_strings() {
    let text = "a // b\n\"c \\\" d\" e r#\"f \" g\"# h /* i */ 'j' 'k '\\n' 'l\n";
    let blanked = code(text);
    assert_eq!(blanked.len(), text.len());
    let left: Vec<&str> = blanked.split_whitespace().collect();
    assert_eq!(left, ["a", "e", "h", "'k", "'l"]);
}
