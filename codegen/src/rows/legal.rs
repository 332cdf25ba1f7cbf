//! Rows of `backends.ron`, `expansions.ron` and `knobs.ron`.

use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackendRow {
    pub name: String,
    pub on: String,
    pub convert_unsupported_ops: String,
    pub mid_expansion: String,
    pub late_expansion: String,
    pub late_expansion_unsupported_ops: String,
    pub late_expansion_unsupported_ops2: String,
    pub late_expansion_unsupported_mid: Option<String>,
    pub operand_hooks: String,
    pub src: String,
}

impl BackendRow {
    /// The slots in the order of the phases: name, and families if a handler is installed.
    pub fn slots(&self) -> [(&'static str, Option<&str>); 6] {
        [
            ("ConvertUnsupportedOps", Some(&self.convert_unsupported_ops)),
            ("MidExpansion", Some(&self.mid_expansion)),
            ("LateExpansion", Some(&self.late_expansion)),
            ("LateExpansionUnsupportedOps", Some(&self.late_expansion_unsupported_ops)),
            ("LateExpansionUnsupportedOpsMid", self.late_expansion_unsupported_mid.as_deref()),
            ("LateExpansionUnsupportedOps2", Some(&self.late_expansion_unsupported_ops2)),
        ]
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpansionRow {
    pub name: String,
    pub ops: String,
    pub src: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnobRow {
    pub number: u16,
    pub name: String,
    pub default: i64,
    pub gates: String,
    pub src: String,
}
