//! `prepared`: lists prepared transactions and ends them.

use clap::Args;
use serde_json::json;
use windrow::{Db, Durability, Error, ErrorKind, PreparedTransaction, Result};

use crate::outcome::Outcome;
use crate::output::Output;
use crate::store::{self, DbArgs};

/// Arguments of `prepared`.
#[derive(Debug, Args)]
#[command(after_help = "\
Lists the transactions that a program has prepared and nobody has committed or rolled back, one name on \
a line. Each holds the keys that it writes and has read until its end: no other write can change them. \
Whoever ends one by hand must know what the other databases of its transaction have done. The end \
survives a power failure. If no transaction of the name is prepared, the exit code is 1.

Examples:
  windrow prepared shop.db
  windrow prepared shop.db --commit \"order 17\"
  windrow prepared shop.db --roll-back \"order 18\" --json")]
pub(crate) struct PreparedArgs {
    #[command(flatten)]
    of: DbArgs,

    /// Commit the prepared transaction of this name
    #[arg(long, value_name = "NAME", conflicts_with = "roll_back")]
    commit: Option<String>,

    /// Roll back the prepared transaction of this name
    #[arg(long, value_name = "NAME")]
    roll_back: Option<String>,
}

pub(crate) fn run(args: &PreparedArgs, output: &mut Output) -> Result<Outcome> {
    match (&args.commit, &args.roll_back) {
        (Some(name), _) => {
            let db = store::open(&args.of.db)?;
            find(&db, name)?.commit_with(Durability::Sync)?;
            db.close()?;
            output.object(&json!({ "committed": name }))?;
            output.line(format_args!("committed \"{name}\""))?;
        }
        (None, Some(name)) => {
            let db = store::open(&args.of.db)?;
            find(&db, name)?.roll_back_with(Durability::Sync)?;
            db.close()?;
            output.object(&json!({ "rolled_back": name }))?;
            output.line(format_args!("rolled back \"{name}\""))?;
        }
        (None, None) => {
            let db = store::open_to_read(&args.of.db)?;
            let names = db.prepared_transactions();
            db.close()?;
            for name in &names {
                output.object(&json!({ "name": name }))?;
                output.line(name)?;
            }
            if names.is_empty() {
                output.note("no transaction is prepared");
            }
        }
    }
    Ok(Outcome::Done)
}

/// # Errors
/// `NotFound` if no transaction of this name is prepared.
fn find(db: &Db, name: &str) -> Result<PreparedTransaction> {
    db.prepared_transaction(name).ok_or_else(|| {
        let message = format!(
            "{} has no prepared transaction \"{name}\"",
            db.path().display()
        );
        Error::new(ErrorKind::NotFound, message)
    })
}
