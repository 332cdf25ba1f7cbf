//! The name of a PTX instruction as a person would write it, for diagnostics.

use crate::ptx::ast::Instruction;

/// Operation, modifiers, types. The modifiers are in the order of their fields, not of the source,
/// because the parser sorts them into fields.
pub(crate) fn full_name(inst: &Instruction) -> String {
    let m = &inst.mods;
    let flags = [
        (m.ftz, "ftz"),
        (m.saturate, "sat"),
        (m.saturate_finite, "satfinite"),
        (m.oob, "oob"),
        (m.relu, "relu"),
        (m.carry_out, "cc"),
        (m.nan, "NaN"),
        (m.xorsign, "xorsign"),
        (m.uniform, "uni"),
        (m.to, "to"),
        (m.non_coherent, "nc"),
        (m.cache_hint, "L2::cache_hint"),
    ];
    let choices = [
        m.proxy.map(|x| x.name()),
        m.semantics.map(|x| x.name()),
        m.scope.map(|x| x.name()),
        m.space.map(|x| x.name()),
        m.atom_op.map(|x| x.name()),
        m.compare.map(|x| x.name()),
        m.bool_op.map(|x| x.name()),
        m.mul_mode.map(|x| x.name()),
        m.rounding.map(|x| x.name()),
        m.precision.map(|x| x.name()),
        m.test.map(|x| x.name()),
        m.geometry.map(|x| x.name()),
        m.vector.map(|x| x.name()),
        m.matrix_shape.map(|x| x.name()),
        m.mma_kind.map(|x| x.name()),
    ];
    let mut name = inst.op.name().to_string();
    let types = inst.types.iter().map(|ty| ty.name());
    let flags = flags.iter().filter(|f| f.0).map(|f| f.1);
    for part in choices.into_iter().flatten().chain(flags).chain(types) {
        name.push('.');
        name.push_str(part);
    }
    name
}
