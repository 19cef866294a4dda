/* chem/common/bond_order.h - orders of bonds.
 * SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only (both programs include it) */
#ifndef CH_BOND_ORDER_H
#define CH_BOND_ORDER_H

/* Order of a bond. In aromatic rings it also says how the Kekule structure draws the bond. */
enum ch_order { CH_SINGLE = 1, CH_DOUBLE, CH_TRIPLE, CH_AROMATIC_SINGLE, CH_AROMATIC_DOUBLE };

static inline int ch_order_drawn(int order) { return order < CH_AROMATIC_SINGLE ? order : order - CH_TRIPLE; }

#endif
