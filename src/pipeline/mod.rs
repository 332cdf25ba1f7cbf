//! The phases as one table-checked list, with dump and verify hooks.
