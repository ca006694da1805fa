//! The full structural check: what the command line, the tests and careful owners call.
//!
//! Concurrency: works on held versions; runs beside everything else.

use super::stats::VerifyReport;
use super::{Engine, KeyspaceCore};
use crate::base::{Error, ErrorKind, Result};
use crate::filter::FILTER_UNITS_MAX;

impl Engine {
    /// Checks every table of every keyspace, block by block, against the manifest, and every value
    /// that tables refer to.
    pub(crate) fn verify(&self) -> Result<VerifyReport> {
        self.check_open()?;
        let mut report = VerifyReport::default();
        for keyspace in self.keyspaces.load().iter() {
            self.verify_keyspace(keyspace, &mut report)?;
        }
        Ok(report)
    }

    fn verify_keyspace(&self, keyspace: &KeyspaceCore, report: &mut VerifyReport) -> Result<()> {
        let state = keyspace.state_full();
        if let Err(contradiction) = state.version.check() {
            report.damage.push(Error::new(
                ErrorKind::Corruption,
                format!("keyspace {}: {contradiction}", keyspace.name()),
            ));
        }
        // Past what is open already, as for tables.
        let mut values = self.value_windows();
        for file in state
            .version
            .levels()
            .iter()
            .flat_map(|level| level.files())
        {
            report.files += 1;
            // Opened anew, so that footers, indexes and filters are read from the disk again.
            match self.tables.open_anew(&file.meta, FILTER_UNITS_MAX) {
                Ok(table) => {
                    let mut check_value = |key: &[u8], pointer: &[u8]| {
                        report.values += 1;
                        let (file, pointer) = state.version.values().resolve(pointer)?;
                        values.read(&file.meta, key, &pointer).map(drop)
                    };
                    let checked = table.verify(&mut report.damage, &mut check_value)?;
                    report.segments += checked.segments;
                    report.blocks += checked.blocks;
                    report.entries += checked.entries;
                    report.bytes += checked.bytes;
                }
                Err(error) if matches!(error.kind(), ErrorKind::Io | ErrorKind::Closed) => {
                    return Err(error);
                }
                Err(error) => report.damage.push(error),
            }
        }
        Ok(())
    }
}
