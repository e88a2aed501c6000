"""What the column engines (glu, sflu, crisscross) share: the plan of L + U, its arrays, groups of columns, solves."""
