//! Backups of a database at a URL, such as `s3://bucket/prefix` (with the feature `aws`). Credentials and settings of the store
//! are those of the environment, such as `AWS_ACCESS_KEY_ID`. For a folder take `FolderStore` of Windrow: a `file://` URL here is
//! not synced, so a power failure could lose what a backup relies on.
//!
//! `cargo run --release -p windrow-object-store --features aws --example backups -- list s3://backups/shop`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::env;
use std::error::Error;
use std::sync::Arc;

use object_store::parse_url_opts;
use windrow::backup::Backups;
use windrow::{Db, Options};
use windrow_object_store::{Bucket, BucketStore};

const USAGE: &str = "backups backup DB URL | list URL | restore URL NUMBER TARGET | unlock URL";

fn bucket(url: &str) -> Result<Bucket, Box<dyn Error>> {
    // Keys of other stores and of other programs are left alone.
    let (objects, prefix) = parse_url_opts(&url.parse()?, env::vars())?;
    Ok(Bucket::new(objects.into(), prefix.as_ref())?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["backup", db, url] => {
            let db = Db::open(db, Options::default())?;
            let store = BucketStore::open(&bucket(url)?, "the example")?;
            let made = db.backup(&Backups::new(Arc::new(store)))?;
            println!("backup {}: {} bytes copied", made.number, made.copied_bytes);
            db.close()?;
        }
        ["list", url] => {
            let backups = Backups::new(Arc::new(BucketStore::open_read_only(&bucket(url)?)));
            for backup in backups.list()? {
                println!("{backup:?}");
            }
        }
        ["restore", url, number, target] => {
            let backups = Backups::new(Arc::new(BucketStore::open_read_only(&bucket(url)?)));
            backups.restore(number.parse()?, target)?;
        }
        ["unlock", url] => match BucketStore::unlock(&bucket(url)?)? {
            Some(owner) => println!("removed the lock of {owner}"),
            None => println!("there is no lock"),
        },
        _ => return Err(USAGE.into()),
    }
    Ok(())
}
