//! Workspaces shared by the threads of a sweep.

use crate::model::Workspace;
use std::ops::{Deref, DerefMut};
use std::sync::Mutex;

/// Spare workspaces, at most one per thread.
#[derive(Default)]
pub(crate) struct WorkspacePool(Mutex<Vec<Workspace<f32>>>);

/// A workspace of a [`WorkspacePool`], returned to it when dropped.
pub(crate) struct WorkspaceGuard<'a> {
    pool: &'a WorkspacePool,
    workspace: Workspace<f32>,
}

impl WorkspacePool {
    /// A spare workspace, or a new one.
    pub(crate) fn take(&self) -> WorkspaceGuard<'_> {
        let spare = self.0.lock().ok().and_then(|mut spare| spare.pop());
        WorkspaceGuard { pool: self, workspace: spare.unwrap_or_default() }
    }
}

impl Deref for WorkspaceGuard<'_> {
    type Target = Workspace<f32>;
    fn deref(&self) -> &Self::Target {
        &self.workspace
    }
}

impl DerefMut for WorkspaceGuard<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.workspace
    }
}

impl Drop for WorkspaceGuard<'_> {
    fn drop(&mut self) {
        if let Ok(mut spare) = self.pool.0.lock() {
            spare.push(std::mem::take(&mut self.workspace));
        }
    }
}
