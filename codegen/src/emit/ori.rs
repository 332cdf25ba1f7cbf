//! Emits `ori.rs`: opcodes with their roles and properties, role names, modifier kinds and their
//! values.

use super::{camel, constant, phf_map, plain_enum};
use crate::model::Model;
use crate::model::memory::modifier;
use crate::model::ori::{Op, RoleSpec};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};

/// The generated items.
pub fn emit(model: &Model) -> TokenStream {
    let ori = &model.ori;
    let ops = ops(&ori.ops);
    let infos = ori.ops.iter().map(|op| info(op, model));
    let by_name: Vec<_> = ori.ops.iter().map(|o| (o.row.op.clone(), format!("Op::{}", o.row.op))).collect();
    let by_name = phf_map("OP_BY_NAME", "Opcode by its name in the tables.", quote!(Op), &by_name);
    let count = ori.ops.len();
    let index = opcode_index(&ori.ops);
    let names = ori.ops.iter().map(|o| &o.row.op);
    let props: Vec<_> = ori.properties.iter().map(|p| (camel(&p.name), p.name.clone())).collect();
    let props = plain_enum("Prop", "A property of opcodes that passes ask for.", &props);
    let roles: Vec<_> = ori.roles.iter().map(|r| (camel(r), r.clone())).collect();
    let roles = plain_enum("Role", "The part that an operand plays in its instruction.", &roles);
    let kinds: Vec<_> = ori.kinds.iter().map(|k| (camel(&k.name), k.name.clone())).collect();
    let kinds = plain_enum("Mod", "A modifier kind.", &kinds);
    let values = values(model);
    quote! {
        #ops #props #roles #kinds #values #by_name #index
        static OP_NAMES: [&str; #count] = [#(#names),*];
        /// Facts of each opcode, in the order of their numbers.
        pub static OPS: [OpInfo; #count] = [#(#infos),*];
    }
}

fn ops(ops: &[Op]) -> TokenStream {
    let name = ops.iter().map(|o| format_ident!("{}", o.row.op));
    let num = ops.iter().map(|o| o.row.num);
    quote! {
        /// An opcode; the discriminant is its number in the tables.
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u16)]
        pub enum Op { #(#name = #num),* }
    }
}

/// Index in OPS by opcode number; 65535 for a number without a row.
fn opcode_index(ops: &[Op]) -> TokenStream {
    let size = ops.last().map_or(0, |o| usize::from(o.row.num) + 1);
    let mut index = vec![u16::MAX; size];
    for (i, op) in ops.iter().enumerate() {
        index[usize::from(op.row.num)] = i as u16;
    }
    quote! { pub(crate) static OP_INDEX: [u16; #size] = [#(#index),*]; }
}

fn info(op: &Op, model: &Model) -> TokenStream {
    let recipe = model.operands.recipe(&op.row.recipe).unwrap_or_default();
    let (text, built, name) = (&op.row.text, op.row.state == "built", &op.row.op);
    let ident = format_ident!("{name}");
    let mask = op.props.iter().fold(0u128, |mask, p| mask | 1 << p);
    let roles = op.roles.iter().map(role);
    let places = |direction| {
        let roles = op.roles.iter().enumerate().filter(move |(_, role)| role.direction == direction);
        roles.fold(0u16, |mask, (at, _)| mask | 1 << at)
    };
    let (defs, uses) = (places('>'), places('<'));
    let uniform = op.row.uniform.split_whitespace().map(|name| format_ident!("{name}"));
    let fused = match op.row.fused.as_str() {
        "" => quote!(None),
        name => {
            let name = format_ident!("{name}");
            quote!(Some(Op::#name))
        }
    };
    let with = modifier(&model.ori, &op.row.idempotent_with).map(|(kind, value)| {
        let kind = &model.ori.kinds[kind];
        let (name, module) = (format_ident!("{}", camel(&kind.name)), format_ident!("r#{}", kind.name));
        let value = format_ident!("{}", constant(&kind.values[value]));
        quote!((Mod::#name, value::#module::#value))
    });
    let with = with.map_or_else(|| quote!(None), |with| quote!(Some(#with)));
    quote! { OpInfo {
        op: Op::#ident, name: #name, text: #text, built: #built, props: #mask, recipe: #recipe, uniform: &[#(Op::#uniform),*], fused: #fused, idempotent_with: #with,
        defs: #defs, uses: #uses, roles: &[#(#roles),*]
    } }
}

fn role(role: &RoleSpec) -> TokenStream {
    let name = format_ident!("{}", camel(&role.name));
    let direction = match role.direction {
        '>' => quote!(Direction::Def),
        '<' => quote!(Direction::Use),
        _ => quote!(Direction::None),
    };
    let class = match role.class {
        'r' => quote!(Class::Reg),
        'u' => quote!(Class::Uniform),
        'p' => quote!(Class::Pred),
        'b' => quote!(Class::Barrier),
        'i' => quote!(Class::Imm),
        'l' => quote!(Class::Label),
        _ => quote!(Class::Special),
    };
    let width = match role.width.parse::<u8>() {
        Ok(n) => quote!(Width::Words(#n)),
        Err(_) => {
            let rule = format_ident!("{}", camel(&role.width));
            quote!(Width::#rule)
        }
    };
    let default = match role.default.as_deref() {
        None => quote!(Absent::Required),
        Some("PT") => quote!(Absent::True),
        Some("!PT") => quote!(Absent::False),
        Some(_) => quote!(Absent::Zero),
    };
    quote! { RoleInfo { role: Role::#name, direction: #direction, class: #class, width: #width, absent: #default } }
}

/// The answers of a kind's values to a question, in their order.
fn answers(model: &Model, kind: &crate::model::ori::ModKind, question: &str) -> TokenStream {
    let rows = || model.ori.meanings.iter().filter(|row| row.kind == kind.name && row.says == question);
    if rows().next().is_none() {
        return quote!(&[]);
    }
    let of_value = |value: &String| {
        let row = rows().find(|row| row.values.split_whitespace().any(|word| word == value));
        row.map_or(0, |row| row.is)
    };
    let answers = kind.values.iter().map(of_value);
    quote!(&[#(#answers),*])
}

fn values(model: &Model) -> TokenStream {
    let kinds = &model.ori.kinds;
    let modules = kinds.iter().map(|kind| {
        let doc = format!("Values of the modifier kind `{}`.", kind.name);
        let module = format_ident!("r#{}", kind.name);
        let consts = kind.values.iter().enumerate().map(|(i, text)| {
            let (ident, i) = (format_ident!("{}", constant(text)), i as u8);
            quote!(pub const #ident: u8 = #i;)
        });
        quote! { #[doc = #doc] pub mod #module { #(#consts)* } }
    });
    let texts = kinds.iter().map(|kind| {
        let values = kind.values.iter().map(|v| if v == "-" { "" } else { v });
        quote!(&[#(#values),*])
    });
    let count = kinds.len();
    let questions = model.ori.questions();
    let says = questions.iter().map(|name| format_ident!("{}", camel(name)));
    let answers = kinds.iter().map(|kind| {
        let of_kind = questions.iter().map(|question| answers(model, kind, question));
        quote!([#(#of_kind),*])
    });
    let asked = questions.len();
    quote! {
        /// What is asked of the values of modifiers.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Says { #(#says),* }
        /// The answer of each value of a kind, by question; no values where none has one.
        static MOD_SAYS: [[&[u8]; #asked]; #count] = [#(#answers),*];
        /// Values of modifiers by kind, as constants.
        pub mod value { #(#modules)* }
        /// Texts of the values of each modifier kind; empty if nothing is printed.
        pub static MOD_TEXTS: [&[&str]; #count] = [#(#texts),*];
    }
}
