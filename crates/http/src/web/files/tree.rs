//! Opens files below a directory, and nothing else, even while other processes move, replace and link
//! files there. Blocks, but for what is opened from the kernel's memory.
//!
//! On Linux the kernel resolves a path and opens what it leads to in one step, and does not leave the directory
//! (`openat2` with `RESOLVE_BENEATH`, since 5.6). Where that call is missing, a path is resolved, compared with the
//! directory and opened in three steps: a process with write access below the directory could exchange a link in
//! between.

use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
#[cfg(target_os = "linux")]
use std::sync::atomic::{AtomicBool, Ordering};

use super::error::FileError;

/// A directory and the files below it.
#[derive(Debug)]
pub(super) struct Tree {
    /// Absolute, free of symbolic links.
    root: PathBuf,
    /// Whether symbolic links may lead out of it.
    follow: bool,
    /// Whether the kernel confines lookups.
    #[cfg(target_os = "linux")]
    confined: bool,
    /// Whether the kernel may be asked for what it has in memory alone.
    #[cfg(target_os = "linux")]
    cached: AtomicBool,
}

impl Tree {
    /// The tree below `root`, whose path must be free of symbolic links; with `follow`, including the
    /// targets of its links.
    pub(super) fn new(root: PathBuf, follow: bool) -> Self {
        #[cfg(target_os = "linux")]
        let confined = !follow && kernel::confines(&root);
        Self {
            #[cfg(target_os = "linux")]
            confined,
            #[cfg(target_os = "linux")]
            cached: AtomicBool::new(confined),
            root,
            follow,
        }
    }

    /// Opens the file at `relative`, or reports that it is a directory.
    pub(super) fn open(&self, relative: &Path) -> Result<Opened, FileError> {
        #[cfg(target_os = "linux")]
        if self.confined {
            return match kernel::open(&self.root, relative, kernel::Access::Read) {
                Ok((file, metadata)) => Opened::of(file, metadata),
                // A directory without read permission may have readable files.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    if self.metadata(relative)?.is_dir() {
                        Ok(Opened::Directory)
                    } else {
                        Err(error.into())
                    }
                }
                Err(error) if kernel::leads_out(&error) => Err(FileError::Outside),
                Err(error) => Err(error.into()),
            };
        }
        let path = self.resolve(relative)?;
        // Checked before opening: opening a device may have side effects.
        let metadata = fs::metadata(&path)?;
        if metadata.is_dir() {
            return Ok(Opened::Directory);
        }
        if !metadata.is_file() {
            return Err(FileError::NotFound);
        }
        let file = open_without_waiting(&path)?;
        let metadata = file.metadata()?;
        Opened::of(file, metadata)
    }

    /// Opens the file at `relative` if the kernel has all of its path in memory, so that nothing waits for a device.
    /// `None` otherwise, and for anything but a regular file: [`Tree::open`] finds out more.
    #[cfg(target_os = "linux")]
    pub(super) fn open_cached(&self, relative: &Path) -> Option<(File, Metadata)> {
        if !self.cached.load(Ordering::Relaxed) {
            return None;
        }
        match kernel::open_cached(&self.root, relative) {
            Ok((file, metadata)) => metadata.is_file().then_some((file, metadata)),
            Err(error) => {
                // Kernels before 5.12.
                if error.kind() == io::ErrorKind::InvalidInput {
                    self.cached.store(false, Ordering::Relaxed);
                }
                None
            }
        }
    }

    /// Other systems have no such call.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn open_cached(&self, _: &Path) -> Option<(File, Metadata)> {
        None
    }

    /// Metadata of the file or directory at `relative`.
    pub(super) fn metadata(&self, relative: &Path) -> Result<Metadata, FileError> {
        #[cfg(target_os = "linux")]
        if self.confined {
            return match kernel::open(&self.root, relative, kernel::Access::None) {
                Err(error) if kernel::leads_out(&error) => Err(FileError::Outside),
                opened => Ok(opened?.1),
            };
        }
        Ok(fs::metadata(self.resolve(relative)?)?)
    }

    /// The absolute path of `relative`, for reading names; each is checked separately.
    pub(super) fn resolve(&self, relative: &Path) -> Result<PathBuf, FileError> {
        let resolved = fs::canonicalize(self.root.join(relative))?;
        if self.follow || resolved.starts_with(&self.root) {
            Ok(resolved)
        } else {
            Err(FileError::Outside)
        }
    }
}

/// Result of opening.
#[derive(Debug)]
pub(super) enum Opened {
    /// A regular file.
    File(File, Metadata),
    Directory,
}

impl Opened {
    fn of(file: File, metadata: Metadata) -> Result<Self, FileError> {
        if metadata.is_file() {
            Ok(Self::File(file, metadata))
        } else if metadata.is_dir() {
            Ok(Self::Directory)
        } else {
            Err(FileError::NotFound)
        }
    }
}

/// Opens for reading. Non-blocking, because a FIFO put in its place would block the thread until it
/// is opened for writing.
fn open_without_waiting(path: &Path) -> io::Result<File> {
    let mut options = fs::OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
        options.custom_flags(flags.bits().cast_signed());
    }
    options.open(path)
}

/// Lookups that the kernel confines to a directory.
#[cfg(target_os = "linux")]
mod kernel {
    use std::fs::{self, File, Metadata};
    use std::io;
    use std::path::Path;

    use rustix::fd::OwnedFd;
    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
    use rustix::io::Errno;

    /// Purpose of opening.
    #[derive(Clone, Copy)]
    pub(super) enum Access {
        Read,
        /// Metadata alone.
        None,
    }

    /// How often a lookup is repeated when a rename interfered.
    const ATTEMPTS: usize = 8;

    /// Whether the kernel has the call and permits it.
    pub(super) fn confines(root: &Path) -> bool {
        let directory = open_root(root);
        directory.is_ok_and(|directory| beneath(&directory, Path::new("."), Access::None).is_ok())
    }

    /// Whether a lookup failed because it would have left the directory.
    pub(super) fn leads_out(error: &io::Error) -> bool {
        error.raw_os_error() == Some(Errno::XDEV.raw_os_error())
    }

    /// Opens what is at `relative` below `root`.
    pub(super) fn open(
        root: &Path,
        relative: &Path,
        access: Access,
    ) -> io::Result<(File, Metadata)> {
        // Opened each time: the directory may have been replaced by another of its name.
        let directory = open_root(root)?;
        let opened = match beneath(&directory, relative, access) {
            // The kernel rejects absolute links even if they lead back, and paths through the
            // parent.
            Err(error) if leads_out(&error) => {
                let resolved = fs::canonicalize(root.join(relative))?;
                let inside = resolved.strip_prefix(root).map_err(|_| error)?;
                beneath(&directory, inside, access)
            }
            opened => opened,
        };
        let file = File::from(opened?);
        let metadata = file.metadata()?;
        Ok((file, metadata))
    }

    /// Opens what is at `relative` below `root` from the kernel's cache of paths (`RESOLVE_CACHED`, since 5.12).
    pub(super) fn open_cached(root: &Path, relative: &Path) -> io::Result<(File, Metadata)> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = openat2(CWD, root, flags, Mode::empty(), ResolveFlags::CACHED)?;
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::CACHED;
        let file = openat2(directory, relative, flags, Mode::empty(), resolve)?;
        let file = File::from(file);
        let metadata = file.metadata()?;
        Ok((file, metadata))
    }

    fn open_root(root: &Path) -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(openat(CWD, root, flags, Mode::empty())?)
    }

    fn beneath(directory: &OwnedFd, relative: &Path, access: Access) -> io::Result<OwnedFd> {
        let relative = if relative.as_os_str().is_empty() {
            Path::new(".")
        } else {
            relative
        };
        let flags = match access {
            Access::Read => OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY,
            Access::None => OFlags::PATH,
        };
        let flags = flags | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        for _ in 1..ATTEMPTS {
            match openat2(directory, relative, flags, Mode::empty(), resolve) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                opened => return Ok(opened?),
            }
        }
        Ok(openat2(directory, relative, flags, Mode::empty(), resolve)?)
    }
}
