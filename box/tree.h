/* box/tree.h - the living tree at one instant: copied out of the table of vitals, then sorted out.
 *
 * Owns     what it copied.   Threads  any; one at a time per tree.
 */
#ifndef NOH_BOX_TREE_H
#define NOH_BOX_TREE_H

#include "box/api.h"

struct tree_node {
	struct part_vitals of;
	noh_life life;
	bool     type_out;                 /* its type is quarantined                              */
	uint32_t from, count;              /* its children in kids                                 */
	bool     seen;
	uint32_t bytes;
	char    *address, *parent, *reason, *error;     /* in text, with NUL                       */
	char     text[];
};

struct tree_step { uint32_t node, depth; bool last; };

struct tree {
	struct tree_node **nodes;          /* by address                                           */
	uint32_t           count, room;
	uint32_t          *kids;           /* by parent, then by order                             */
	struct tree_step  *walk;           /* depth first                                          */
	uint32_t           steps;
	bool               failed;         /* no memory                                            */
};

/* From root on (an address as "type:id"; NULL: from all roots). whole: with those above somebody who is in memory, and not
 * there themselves: what is below them is found, too. Reads storage. NOH_OK, NOH_ENOMEM, NOH_ENOACTOR. */
int  tree_make(noh_box *box, struct port *p, const char *root, bool whole, struct tree *t);
void tree_free(struct tree *t);
void tree_show(const struct tree_node *n, noh_vitals *out);

/* "type/id" as "type:id", and its type. NOH_OK, NOH_EADDRESS, NOH_ENOTYPE. */
int  tree_spell(noh_box *box, const char *address, char out[ADDRESS_MAX + 1], struct type **type);

#endif
