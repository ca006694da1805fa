//! What the features need on the machine to be built and to run, and whether the machine has it.
//!
//! The build script and the command `needs` share this file, so it uses only the standard library.
#![expect(
    clippy::disallowed_methods,
    reason = "it looks for programs and headers on this machine"
)]

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The file in which Linux counts the I/O of a process. No peer counts its own.
const COUNTS: &str = "/proc/self/io";

/// A feature of this crate.
#[derive(Debug)]
pub(crate) struct Feature {
    pub(crate) name: &'static str,
    /// Its engines.
    pub(crate) engines: &'static str,
    /// What it needs besides Rust and Linux.
    pub(crate) needs: &'static [Need],
    /// A remark for those who build it.
    pub(crate) remark: &'static str,
}

/// All features.
pub(crate) const FEATURES: [Feature; 5] = [
    Feature {
        name: "fjall",
        engines: "fjall, fjall-separated",
        needs: &[],
        remark: "",
    },
    Feature {
        name: "redb",
        engines: "redb",
        needs: &[],
        remark: "",
    },
    Feature {
        name: "lmdb",
        engines: "lmdb",
        needs: &[Need::CCompiler],
        remark: "",
    },
    Feature {
        name: "leveldb",
        engines: "leveldb",
        needs: &[Need::LevelDb],
        remark: "",
    },
    Feature {
        name: "rocksdb",
        engines: "rocksdb, blobdb, blobdb-direct, rocksdb-direct-io",
        needs: &[Need::CCompiler, Need::CppCompiler, Need::Libclang],
        remark: "takes 20 minutes or more on few cores",
    },
];

/// Something that a build needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    CCompiler,
    CppCompiler,
    Libclang,
    LevelDb,
}

impl Need {
    /// Its name in messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::CCompiler => "a C compiler",
            Self::CppCompiler => "a C++ compiler",
            Self::Libclang => "libclang",
            Self::LevelDb => "LevelDB's library",
        }
    }

    /// Its package in Debian.
    pub(crate) fn package(self) -> &'static str {
        match self {
            Self::CCompiler => "gcc",
            Self::CppCompiler => "g++",
            Self::Libclang => "libclang-dev",
            Self::LevelDb => "libleveldb-dev",
        }
    }

    /// The environment variable with its place.
    pub(crate) fn variable(self) -> &'static str {
        match self {
            Self::CCompiler => "CC",
            Self::CppCompiler => "CXX",
            Self::Libclang => "LIBCLANG_PATH",
            Self::LevelDb => "LIBRARY_PATH",
        }
    }

    /// Whether the machine has it.
    pub(crate) fn is_met(self) -> bool {
        match self {
            Self::CCompiler => runs(self.variable(), "cc"),
            // A prebuilt library needs no compiler.
            Self::CppCompiler => {
                env::var_os("ROCKSDB_LIB_DIR").is_some() || runs(self.variable(), "c++")
            }
            Self::Libclang => libclang_folders().iter().any(|folder| has_libclang(folder)),
            Self::LevelDb => linked_folders(self.variable())
                .iter()
                .any(|folder| has_leveldb(folder)),
        }
    }
}

impl Feature {
    /// The needs that the machine does not meet.
    fn unmet(&self) -> Vec<Need> {
        let needs = self.needs.iter().copied();
        needs.filter(|need| !need.is_met()).collect()
    }

    /// One sentence of advice, if something is missing.
    pub(crate) fn advice(&self) -> Option<String> {
        if !Path::new(COUNTS).exists() {
            let name = self.name;
            return Some(format!(
                "the feature {name} needs Linux, which counts the I/O of a process in {COUNTS}"
            ));
        }
        let unmet = self.unmet();
        if unmet.is_empty() {
            return None;
        }
        let all = |word: fn(Need) -> &'static str, between: &str| {
            let words: Vec<&str> = unmet.iter().map(|&need| word(need)).collect();
            words.join(between)
        };
        Some(format!(
            "the feature {} needs {}: install it (on Debian: apt install {}), or set {} if it is \
             somewhere else",
            self.name,
            all(Need::name, " and "),
            all(Need::package, " "),
            all(Need::variable, " and "),
        ))
    }
}

/// Whether the program named by `variable`, or else `program`, can be started.
fn runs(variable: &str, program: &str) -> bool {
    let named = env::var(variable).unwrap_or_default();
    // A wrapper or arguments may stand beside the compiler. The first word is the program.
    let program = named.split_whitespace().next().unwrap_or(program);
    let started = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    started.is_ok_and(|status| status.success())
}

/// The folders that may hold libclang: those in which its users look for it.
fn libclang_folders() -> Vec<PathBuf> {
    let mut folders = listed("LIBCLANG_PATH");
    folders.extend(listed("LD_LIBRARY_PATH"));
    let asked = Command::new(env::var("LLVM_CONFIG_PATH").unwrap_or("llvm-config".to_owned()))
        .arg("--libdir")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    if let Ok(output) = asked {
        let folder = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        folders.extend((!folder.is_empty()).then(|| PathBuf::from(folder)));
    }
    for parent in ["/usr/lib", "/usr/local"].map(Path::new) {
        folders.push(parent.to_owned());
        for name in names(parent) {
            folders.push(parent.join(&name));
            folders.push(parent.join(&name).join("lib"));
        }
    }
    folders.extend(["/usr/lib64", "/lib"].map(PathBuf::from));
    folders
}

/// Whether `place` is libclang, or a folder with it.
fn has_libclang(place: &Path) -> bool {
    let is_libclang = |name: &str| match name.strip_prefix("libclang") {
        Some(rest) if rest.starts_with(".so") => true,
        // A version follows; `libclang-cpp` is another library.
        Some(rest) => rest.contains(".so") && rest.as_bytes()[1].is_ascii_digit(),
        None => false,
    };
    let own = place.file_name().and_then(|name| name.to_str());
    (place.is_file() && own.is_some_and(is_libclang))
        || names(place).iter().any(|name| is_libclang(name))
}

/// The folders in which a linker looks for libraries: those of `variable` and the system's, including those of an
/// architecture.
fn linked_folders(variable: &str) -> Vec<PathBuf> {
    let mut folders = listed(variable);
    for parent in ["/usr/lib", "/usr/local/lib"].map(Path::new) {
        folders.push(parent.to_owned());
        folders.extend(names(parent).iter().map(|name| parent.join(name)));
    }
    folders.extend(["/usr/lib64", "/lib"].map(PathBuf::from));
    folders
}

/// Whether `folder` has a LevelDB that can be linked. A file with a version in its name cannot.
fn has_leveldb(folder: &Path) -> bool {
    ["libleveldb.so", "libleveldb.a"]
        .iter()
        .any(|name| folder.join(name).is_file())
}

/// The folders in an environment variable.
fn listed(variable: &str) -> Vec<PathBuf> {
    let list = env::var_os(variable).unwrap_or_default();
    let folders = env::split_paths(&list);
    folders.filter(|folder| folder.is_absolute()).collect()
}

/// The names in a folder; none if it cannot be read.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leveldb_is_what_can_be_linked() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!has_leveldb(folder.path()));
        fs::create_dir(folder.path().join("leveldb")).unwrap();
        fs::write(folder.path().join("leveldb/c.h"), "").unwrap();
        fs::write(folder.path().join("libleveldb.so.1"), "").unwrap();
        assert!(!has_leveldb(folder.path()));
        fs::write(folder.path().join("libleveldb.a"), "").unwrap();
        assert!(has_leveldb(folder.path()));
    }
}
