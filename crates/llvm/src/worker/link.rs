//! A worker whose library links: COMGR.

use std::path::Path;
use std::time::Duration;

use super::pool::start;
use super::process::{Failure, Process};
use super::protocol::{Reply, Request};
use crate::{Error, ErrorKind};

/// See the module. Dropped, it ends.
pub(crate) struct Linker {
    process: Process,
    timeout: Duration,
}

impl Linker {
    /// # Errors
    /// [`ErrorKind::NotFound`] when `library` does not load, [`ErrorKind::WorkerFailed`] when this program is not
    /// prepared to be a worker or cannot be started.
    pub fn start(library: &Path, timeout: Duration) -> Result<Self, Error> {
        super::check_offered()?;
        Ok(Linker { process: start(library, timeout)?, timeout })
    }

    /// `COMGR 2.4 (/opt/rocm/lib/libamd_comgr.so.2)`.
    pub fn describe(&self) -> &str {
        &self.process.description
    }

    /// # Errors
    /// [`ErrorKind::LinkFailed`], also when the worker dies or hangs of `object`.
    pub fn link(&mut self, object: &[u8]) -> Result<Vec<u8>, Error> {
        let mut linked = None;
        let answer = self.process.ask(&Request::Link { object }, self.timeout, &mut |reply| {
            if let Reply::Object(object) = reply {
                linked = Some(object.to_vec());
            }
        });
        let failed =
            |why: &str| Error::new(ErrorKind::LinkFailed, format!("{} cannot link: {why}", self.process.description));
        match answer {
            Ok(()) => linked.ok_or_else(|| failed("it says nothing")),
            Err(Failure::Refused(error)) => Err(error),
            Err(Failure::Lost { why, .. }) => Err(failed(&format!("it dies of it: {why}"))),
        }
    }
}
