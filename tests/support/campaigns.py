"""A campaign of the Open Bandit Dataset in small files."""

from __future__ import annotations

from pathlib import Path

ITEMS = """,item_id,item_feature_0,item_feature_1,item_feature_2,item_feature_3
0,0,-1.0,aaaaaaaa11,cccccccc11,eeeeeeee11
1,1,1.0,bbbbbbbb11,cccccccc11,eeeeeeee11
2,2,3.0,aaaaaaaa11,dddddddd11,eeeeeeee11
"""

HEADER = (
    ",timestamp,item_id,position,click,propensity_score,user_feature_0,user_feature_1,user_feature_2,user_feature_3,"
    "user-item_affinity_0,user-item_affinity_1,user-item_affinity_2\n"
)

ROUNDS = """0,2019-11-24 00:00:34.762830+00:00,2,3,0,0.25,u00000000,v00000000,w00000000,x00000000,0.0,0.0,0.5
1,2019-11-24 00:00:53+00:00,0,1,1,0.5,u11111111,v00000000,w00000000,x00000000,0.0,1.0,0.0
2,2019-11-24 00:01:00.000001+00:00,1,2,0,0.25,u22222222,v11111111,w00000000,x11111111,0.0,0.0,2.0
"""


def campaign(tmp_path: Path, rounds: str = HEADER + ROUNDS, items: str = ITEMS) -> Path:
    folder = tmp_path / "random" / "men"
    folder.mkdir(parents=True)
    (folder / "men.csv").write_text(rounds)
    (folder / "item_context.csv").write_text(items)
    return folder
