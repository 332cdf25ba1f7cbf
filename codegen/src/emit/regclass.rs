//! Emits `regclass.rs`: descriptors by opcode, fields, lookup tables, the memory path.

use crate::model::Model;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};

/// The generated items.
pub fn emit(model: &Model) -> TokenStream {
    let r = &model.regclass;
    let mut sorted: Vec<_> = r.categories.iter().collect();
    sorted.sort_by_key(|c| c.row.num);
    let categories = sorted.into_iter().map(|c| {
        let (num, category, fields, status) = (c.row.num, c.row.category, &c.fields, &c.row.status);
        let (seed, says) = (&c.row.seed, &c.row.says);
        // The laws have checked that the opcode has each role.
        let roles = model.ori.ops.iter().find(|o| o.row.num == num).map_or(&[][..], |o| &o.roles);
        let slot = |role: &String| roles.iter().position(|r| r.name == *role).map(|i| i as u8);
        let files = c.contract.iter().filter_map(|(role, files)| slot(role).map(|slot| quote!((#slot, #files))));
        let op = match model.ori.ops.iter().find(|o| o.row.num == num) {
            Some(op) => {
                let ident = format_ident!("{}", op.row.op);
                quote!(Some(Op::#ident))
            }
            None => quote!(None),
        };
        quote!(Category { opcode: #num, op: #op, category: #category, fields: &[#(#fields),*], files: &[#(#files),*], published_as: #seed, says: #says, status: #status })
    });
    let fields = r.fields.iter().map(|(f, place)| {
        let (id, group, meaning, status) = (f.id, &f.group, &f.meaning, &f.status);
        let place = match place {
            Some(p) => {
                let (word, low, bits) = (p.word, p.low, p.bits);
                quote!(Some(Place { word: #word, low: #low, bits: #bits }))
            }
            None => quote!(None),
        };
        let lut = f.values.strip_prefix("lut ").and_then(|name| r.luts.iter().position(|(l, _)| l.name == name));
        let values = match (f.values.as_str(), lut) {
            ("flag", _) => quote!(Values::Flag),
            (_, Some(lut)) => {
                let lut = lut as u8;
                quote!(Values::LookUp(#lut))
            }
            _ => quote!(Values::Unpublished),
        };
        quote!(Field { id: #id, group: #group, place: #place, values: #values, meaning: #meaning, status: #status })
    });
    let luts = r.luts.iter().map(|(l, _)| {
        let (name, size) = (&l.name, l.size);
        quote!((#name, #size))
    });
    let path = r.path.iter().flat_map(|(row, nums)| {
        let (a, b) = (row.field115, row.field113);
        nums.iter().map(move |num| quote!((#num, [#a, #b])))
    });
    let [c, f, l] = [r.categories.len(), r.fields.len(), r.luts.len()];
    let p = r.path.iter().map(|(_, nums)| nums.len()).sum::<usize>();
    quote! {
        /// The published categories of opcodes, in the order of their numbers.
        pub static CATEGORIES: [Category; #c] = [#(#categories),*];
        /// The descriptor's fields, in the order of their ids.
        pub static FIELDS: [Field; #f] = [#(#fields),*];
        /// Lookup tables: name and size.
        pub static LOOK_UPS: [(&str, u16); #l] = [#(#luts),*];
        /// Fields 115 and 113 of the opcodes of the extended memory path.
        pub static MEMORY_PATH: [(u16, [u16; 2]); #p] = [#(#path),*];
    }
}
