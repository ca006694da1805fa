//! What a reader of figures wants to know of the machine that they are from.

use std::fmt::{self, Display};
use std::fs;
use std::thread;

use serde::{Deserialize, Serialize};

/// A machine, as far as it tells of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Its processor's model.
    pub processor: String,
    /// Threads that can run at once.
    pub cores: usize,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// The operating system, with its version.
    pub system: String,
}

impl Host {
    /// The machine that this program runs on.
    pub fn here() -> Self {
        let unknown = || "unknown".to_owned();
        let kibibytes = field("/proc/meminfo", "MemTotal")
            .and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
        let release = line("/proc/sys/kernel/osrelease");
        Self {
            processor: field("/proc/cpuinfo", "model name").unwrap_or_else(unknown),
            cores: thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: kibibytes.unwrap_or(0) << 10,
            system: match release {
                Some(release) => format!("{} {release}", std::env::consts::OS),
                None => std::env::consts::OS.to_owned(),
            },
        }
    }
}

impl Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            processor,
            cores,
            memory_bytes,
            system,
        } = self;
        write!(
            f,
            "{processor} with {cores} cores, {memory_bytes} bytes of memory and {system}"
        )
    }
}

/// What stands behind the first `name:` in a file of such lines.
fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().find_map(|line| {
        let (before, after) = line.split_once(':')?;
        (before.trim() == name).then(|| after.trim().to_owned())
    })
}

fn line(path: &str) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}
